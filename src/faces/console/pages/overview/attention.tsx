import { Button } from "@mantine/core";
import { Link } from "wouter";
import { formatDuration } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";
import { type Alert, useAlerts } from "../../api/alerts.ts";
import { type Overview, useOverview } from "../../api/overview.ts";
import { Ago } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Severity } from "../../components/severity.tsx";
import { SilencedBy } from "../../components/silenced-by.tsx";
import { QueryView } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { formatCount } from "../../look/words.ts";
import { type Params, usePageLink } from "../../state/url-state.ts";
import { useZones, useZoneTitle, zoneTitle } from "../../state/zones.ts";
import { hasRule } from "../alert/event-filter.ts";
import classes from "./overview.module.css";

const SHOWN = 6;

/** Everything that needs a person, the worst first, each with its link. */
export function Attention() {
  const { zones, chosen } = useZones();
  const alerts = useAlerts({ state: UNRESOLVED_STATES, sort: "worst", limit: 200 }, "open");
  const overview = useOverview();
  const ids = new Set(zones.map(({ id }) => id));
  const isShown = ({ zoneId }: Alert) => chosen === "" || (zoneId !== null && ids.has(zoneId));
  return (
    <Panel title="Attention" about="now" flush>
      <QueryView query={alerts} rows={2} asking="alerts">
        {({ items, next }) => {
          const open = items.filter(isShown);
          const firing = open.filter(({ state }) => state === "firing");
          const copying = (overview.data?.zones ?? []).filter((zone) => zone.copying !== null);
          // The oldest hours are near their end until the copy reaches them, which its progress says.
          const concerns = (overview.data?.attention ?? []).filter(
            ({ kind, zoneId }) => kind !== "near-loss" || !copying.some(({ id }) => id === zoneId),
          );
          const taken = open.length - firing.length;
          return (
            <>
              {firing.length + concerns.length + copying.length === 0 ? (
                <Quiet taken={taken} isRead={overview.data?.zones.length !== 0} />
              ) : null}
              <ul className={classes["items"]}>
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
      </QueryView>
    </Panel>
  );
}

function Quiet({ taken, isRead }: { readonly taken: number; readonly isRead: boolean }) {
  if (!isRead) return <div className={classes["quiet"]}>No zone has been read yet.</div>;
  return (
    <div className={classes["quiet"]}>
      <Icon name="check" />
      <span>Nothing needs attention{taken > 0 ? `; ${taken} acknowledged` : ""}. Every zone is read.</span>
    </div>
  );
}

function AlertRow({ alert }: { readonly alert: Alert }) {
  const { id, severity, kind, zoneId, ruleId, ruleTitle, headline, firedAt, quietSince, silence } = alert;
  const link = usePageLink();
  const title = useZoneTitle();
  const rule = ruleId === null || !hasRule({ kind }) ? "" : ` · rule ${ruleId === "" ? "(none)" : ruleId}`;
  return (
    <li className={classes["item"]} data-firing="true">
      <Severity severity={severity} />
      <div className={classes["what"]}>
        <Payload prose text={headline ?? `alert ${id}`} />
        <span className="lw-note lw-block">
          {title(zoneId)}
          {rule} {ruleTitle ?? ""}
          {quietSince === null ? null : (
            <>
              {" "}
              · quiet now, last active <Ago at={quietSince} />
            </>
          )}
        </span>
        {silence === null ? null : (
          <span className="lw-note lw-block">
            <SilencedBy silence={silence} />
          </span>
        )}
      </div>
      <Ago at={firedAt} />
      <div className={classes["open"]}>
        <Button
          component={Link}
          href={link(`/alerts/${id}`)}
          variant="default"
          aria-label={`Open alert ${id}`}
        >
          Open
        </Button>
      </div>
    </li>
  );
}

/** How far the copy of a zone's history has come. */
function CopyRow({ zone }: { readonly zone: Overview["zones"][number] }) {
  const { copying, hoursToLoss, recentEvents } = zone;
  const title = zoneTitle(zone);
  if (copying === null) return null;
  const { hours, done } = copying;
  return (
    <li className={classes["item"]}>
      <span className="lw-dim">copying</span>
      <div className={classes["what"]}>
        {title}: {done} of {hours} hours of the platform's history are copied, {formatCount(recentEvents)}{" "}
        events.
        <progress className={classes["copied"]} max={hours} value={done} aria-label={`History of ${title}`} />
        {hoursToLoss === null ? null : (
          <span className="lw-note lw-block">
            The platform deletes the oldest hour that is not sealed in {formatDuration(hoursToLoss * HOUR_MS)}
            .
          </span>
        )}
      </div>
    </li>
  );
}

type Concern = Overview["attention"][number];

/** Where the reader sees more; a kind without a page says everything in its text. */
const PLACES: Partial<Record<Concern["kind"], { readonly path: string; readonly params?: Params }>> = {
  "not-running": { path: "/operations", params: { tab: "jobs" } },
  unpolled: { path: "/coverage", params: { span: "72h" } },
  suspect: { path: "/coverage", params: { span: "72h" } },
  channel: { path: "/operations" },
  "given-up": { path: "/operations" },
  "self-alert": { path: "/alerts", params: { kind: "self" } },
  "near-loss": { path: "/coverage", params: { span: "72h" } },
  gap: { path: "/coverage", params: { span: "72h" } },
};

function ConcernRow({ kind, zoneId, text }: Concern) {
  const zoneName = useZoneTitle();
  const link = usePageLink();
  const place = PLACES[kind];
  const ofZone: Params = zoneId === null ? {} : { zone: String(zoneId) };
  return (
    <li className={classes["item"]} data-kind={kind}>
      <Severity severity="warning" />
      <div className={classes["what"]}>
        <Payload prose text={text} />
        {zoneId === null ? null : <span className="lw-note lw-block">{zoneName(zoneId)}</span>}
      </div>
      <span />
      {place === undefined ? null : (
        <div className={classes["open"]}>
          <Button
            component={Link}
            href={link(place.path, { ...place.params, ...ofZone })}
            variant="default"
            aria-label={`Look into: ${text}`}
          >
            Look
          </Button>
        </div>
      )}
    </li>
  );
}

function More({
  hidden,
  taken,
  isCut,
}: {
  readonly hidden: number;
  readonly taken: number;
  readonly isCut: boolean;
}) {
  const link = usePageLink();
  if (hidden <= 0 && taken === 0) return null;
  const parts = [
    ...(hidden > 0
      ? [hidden === 1 && !isCut ? "1 other fires" : `${hidden}${isCut ? " or more" : ""} others fire`]
      : []),
    ...(taken > 0 ? [`${taken} acknowledged`] : []),
  ];
  return (
    <div className={classes["quiet"]}>
      <Link href={link("/alerts")}>{parts.join(", ")}</Link>
    </div>
  );
}
