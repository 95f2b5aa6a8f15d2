import { Progress } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { formatDuration } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";
import { type Alert, type Overview, useAlerts, useOverview } from "../../api/queries.ts";
import { AlertText } from "../../components/alert-lines.tsx";
import { SubtleButton } from "../../components/buttons.tsx";
import { Ago, Severity } from "../../components/facts.tsx";
import { Now, QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { type Params, usePageLink } from "../../state/url-state.ts";
import { useZones, useZoneTitle, zoneTitle } from "../../state/zones.ts";
import { Icon } from "../../style/icons.tsx";
import { formatCount } from "../../style/words.ts";
import classes from "./overview.module.css";

const SHOWN = 6;

/** Everything that needs a person, the worst first, each with its link. */
export function Attention() {
  const { isShown } = useZones();
  const alerts = useAlerts({ state: UNRESOLVED_STATES, sort: "worst", limit: 200 });
  const { zones, attention = [] } = useOverview().data ?? {};
  const copying = (zones ?? []).filter((zone) => zone.copying !== null);
  // The oldest hours are near their end until the copy reaches them, which its progress says.
  const concerns = attention.filter(
    ({ kind, zoneId }) => kind !== "near-loss" || !copying.some(({ id }) => id === zoneId),
  );
  return (
    <QueryPanel title="Attention" about={<Now />} query={alerts}>
      {({ items, next }) => {
        // The incident notifies for the rules that are part of it.
        const open = items.filter(({ zoneId, incidentId }) => isShown(zoneId) && incidentId === null);
        const firing = open.filter(({ state }) => state === "firing");
        const taken = open.length - firing.length;
        return (
          <>
            {firing.length + concerns.length + copying.length === 0 ? (
              <NothingToDo taken={taken} isRead={zones?.length !== 0} />
            ) : null}
            <ul className="lw-list">
              {firing.slice(0, SHOWN).map((alert) => (
                <AlertRow key={alert.id} alert={alert} />
              ))}
              {copying.map((zone) => (
                <CopyRow key={zone.id} zone={zone} />
              ))}
              {concerns.map((concern) => (
                <ConcernRow key={concern.text} {...concern} />
              ))}
            </ul>
            <More hidden={firing.length - SHOWN} taken={taken} isCut={next !== null} />
          </>
        );
      }}
    </QueryPanel>
  );
}

function NothingToDo({ taken, isRead }: { readonly taken: number; readonly isRead: boolean }) {
  if (!isRead) return <div className="lw-hint">No zone has been read yet.</div>;
  return (
    <div className="lw-hint">
      <Icon name="check" color="var(--lw-accent)" style={{ verticalAlign: "-3px" }} />{" "}
      <span>Nothing needs attention{taken > 0 ? `; ${taken} acknowledged` : ""}. Every zone is read.</span>
    </div>
  );
}

interface ItemProps {
  readonly sign: ReactNode;
  readonly children: ReactNode;
  readonly at?: string;
  readonly isFiring?: boolean;
  /** Link to more: the address, its word, and its description for people who do not see the row. */
  readonly more?: { readonly href: string; readonly word: string; readonly label: string } | undefined;
}

function Item({ sign, children, at, isFiring = false, more }: ItemProps) {
  return (
    <li className={classes["item"]} data-firing={isFiring}>
      {sign}
      <div className={classes["what"]}>{children}</div>
      {at === undefined ? <span /> : <Ago at={at} />}
      {more === undefined ? null : (
        <div className={classes["open"]}>
          <SubtleButton {...more} />
        </div>
      )}
    </li>
  );
}

function AlertRow({ alert }: { readonly alert: Alert }) {
  const { id, severity, firedAt } = alert;
  const link = usePageLink();
  const more = { href: link(`/alerts/${id}`), word: "Open", label: `Open alert ${id}` };
  return (
    <Item sign={<Severity severity={severity} />} at={firedAt} isFiring more={more}>
      <AlertText alert={alert} />
    </Item>
  );
}

/** How far the copy of a zone's history has come. */
function CopyRow({ zone }: { readonly zone: Overview["zones"][number] }) {
  const { copying, hoursToLoss, recentEvents } = zone;
  const title = zoneTitle(zone);
  if (copying === null) return null;
  const { hours, done } = copying;
  return (
    <Item sign={<span className="lw-dim">copying</span>}>
      {title}: {done} of {hours} hours of the platform's history are copied, {formatCount(recentEvents)}{" "}
      events.
      <Progress maw={480} my={4} value={(100 * done) / hours} aria-label={`History of ${title}`} />
      {hoursToLoss === null ? null : (
        <div className="lw-note">
          The platform deletes the oldest hour that is not sealed in {formatDuration(hoursToLoss * HOUR_MS)}.
        </div>
      )}
    </Item>
  );
}

type Concern = Overview["attention"][number];

const LAST_DAYS = { path: "/coverage", params: { span: "72h" } };
/** Page that shows more of a condition; the others have alerts. */
const PLACES: Readonly<Record<string, { readonly path: string; readonly params?: Params }>> = {
  "not-running": { path: "/operations", params: { tab: "jobs" } },
  unpolled: LAST_DAYS,
  suspect: LAST_DAYS,
  channel: { path: "/operations" },
  "given-up": { path: "/operations" },
  "near-loss": LAST_DAYS,
  gap: LAST_DAYS,
};
const OWN_ALERTS = { path: "/alerts", params: { kind: "self" } };

function ConcernRow({ kind, zoneId, text }: Concern) {
  const zoneName = useZoneTitle();
  const link = usePageLink();
  const place = PLACES[kind] ?? OWN_ALERTS;
  const ofZone: Params = zoneId === null ? {} : { zone: String(zoneId) };
  const href = link(place.path, { ...place.params, ...ofZone });
  const more = { href, word: "Look", label: `Look into: ${text}` };
  return (
    <Item sign={<Severity severity="warning" />} more={more}>
      <Payload prose text={text} />
      {zoneId === null ? null : <div className="lw-note">{zoneName(zoneId)}</div>}
    </Item>
  );
}

interface MoreProps {
  readonly hidden: number;
  readonly taken: number;
  readonly isCut: boolean;
}

function More({ hidden, taken, isCut }: MoreProps) {
  const link = usePageLink();
  const others = hidden === 1 && !isCut ? "1 other fires" : `${hidden}${isCut ? " or more" : ""} others fire`;
  const parts = [...(hidden > 0 ? [others] : []), ...(taken > 0 ? [`${taken} acknowledged`] : [])];
  return parts.length === 0 ? null : (
    <div className="lw-hint">
      <Link href={link("/alerts")}>{parts.join(", ")}</Link>
    </div>
  );
}
