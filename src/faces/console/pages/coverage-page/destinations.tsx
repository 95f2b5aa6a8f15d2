import { many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { Arrival, HourStatus } from "#model/kinds.ts";
import { type Item, useChange, useOperation } from "../../api/ask.ts";
import { ActButton } from "../../components/buttons.tsx";
import { CoverageStrip, countStates, StripAxis, ZoneStrips } from "../../components/coverage-strip.tsx";
import { Ago, Moment, Rows } from "../../components/facts.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";
import { pickUnit } from "../../components/zoom-cells.ts";
import { useSpan } from "../../state/span.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
import { formatCount } from "../../style/words.ts";

type Destination = Item<"forward.status">;

/** The state of coverage that looks as an arrival does. */
const LOOKS: Readonly<Record<Arrival, HourStatus>> = { arrived: "sealed", open: "open", differs: "gap" };
const WORDS: Readonly<Record<HourStatus, string>> = {
  sealed: "arrived: the destination has every stored event",
  searched: "",
  open: "open: not sealed, or not proven yet",
  gap: "differ: sent twice, and events are still missing",
  imported: "",
  unwatched: "not forwarded",
  "not yet": "not yet",
};
const STATE_WORDS: Readonly<Record<Destination["state"], string>> = {
  works: "accepts events",
  waiting: "nothing was sent yet",
  failing: "accepts no events",
  refused: "refuses events until somebody corrects its settings",
};

/** Whether the events have arrived where they are forwarded to. Nothing is shown without a destination. */
export function Destinations() {
  const status = useOperation("forward.status", {}, { refetchInterval: 60_000 });
  if (status.data?.items.length === 0) return null;
  return (
    <QueryPanel
      title="Destinations"
      about="of forwarded events, one mark per hour: arrived, open or not all there"
      query={status}
    >
      {({ items }) => <Rows of={items}>{(one) => <DestinationRow key={one.name} destination={one} />}</Rows>}
    </QueryPanel>
  );
}

function DestinationRow({ destination }: { readonly destination: Destination }) {
  const { name, kind, state, failingSince, lastError, nextAttemptAt, acknowledgedAt } = destination;
  const { isShown } = useZones();
  const zones = destination.zones.filter(({ zoneId }) => isShown(zoneId));
  const sum = (member: "decided" | "arrived" | "differing" | "refused" | "waitingEvents") =>
    zones.reduce((total, zone) => total + zone[member], 0);
  const retry = useChange("forward.retry");
  const isTrouble = state === "failing" || state === "refused";
  return (
    <li data-destination={name}>
      <div>
        <Payload bold prose text={name} /> <span className="lw-dim">{kind ?? "no longer configured"}</span>
        <div className="lw-note">
          <span className={isTrouble ? "lw-warn" : "lw-good"}>{STATE_WORDS[state]}</span>
          <Ago say=" since " at={failingSince} />
          <Payload say=": " prose text={lastError} />
          {isTrouble ? <Ago say=" · next attempt " at={nextAttemptAt} /> : null}
          <Ago say=" · last acknowledged " at={acknowledgedAt} />
        </div>
        <div className="lw-note">
          {formatCount(sum("arrived"))} of {formatCount(sum("decided"))} sealed hours have arrived
          {sum("waitingEvents") === 0
            ? ""
            : ` · at most ${many(sum("waitingEvents"), "event")} still to be sent`}
          {sum("differing") === 0 ? null : (
            <b className="lw-fire"> · {many(sum("differing"), "hour")} differ</b>
          )}
        </div>
      </div>
      <div className="lw-acts">
        {isTrouble || sum("refused") > 0 ? (
          <ActButton
            word="Try again"
            label={`Try again: ${name}`}
            change={retry}
            input={{ destination: name }}
          />
        ) : null}
      </div>
      <div className="lw-across">
        <ProblemBox thrown={retry.error} />
        <Hours destination={name} zoneIds={zones.map(({ zoneId }) => zoneId)} />
        {sum("refused") === 0 ? null : <Refused destination={name} events={sum("refused")} />}
      </div>
    </li>
  );
}

function Hours({
  destination,
  zoneIds,
}: {
  readonly destination: string;
  readonly zoneIds: readonly number[];
}) {
  const { fromMs, toMs } = useSpan();
  const { zones, asked } = useZones();
  const from = Math.floor(fromMs / HOUR_MS) * HOUR_MS;
  const isByHour = pickUnit(toMs - fromMs) === "hour";
  const hours = useOperation(
    "forward.hours",
    { destination, zone: asked, from, to: toMs, limit: 2_000 },
    { enabled: isByHour, refetchInterval: 60_000 },
  );
  if (!isByHour) return <Empty>Choose a span of at most four days to see its hours.</Empty>;
  const starts = Array.from(
    { length: Math.ceil((toMs - from) / HOUR_MS) },
    (_, index) => from + index * HOUR_MS,
  );
  return (
    <QueryView query={hours} asking={`the hours of ${destination}`}>
      {({ items }) =>
        zones
          .filter(({ id }) => zoneIds.includes(id))
          .map((zone) => {
            const found = new Map(
              items.flatMap((hour) => (hour.zoneId === zone.id ? [[Date.parse(hour.startsAt), hour]] : [])),
            );
            const cells = starts.map((startsAtMs) => toCell(startsAtMs, found.get(startsAtMs)));
            const title = zoneTitle(zone);
            return (
              <ZoneStrips key={zone.id} name={<span title={title}>{title}</span>}>
                <CoverageStrip cells={cells} label={`${title} at ${destination}`} words={WORDS} height={14} />
                <StripAxis starts={starts} unit="hour" isShort />
                <div className="lw-note">{countStates(cells, WORDS)}</div>
              </ZoneStrips>
            );
          })
      }
    </QueryView>
  );
}

function toCell(startsAtMs: number, hour: Item<"forward.hours"> | undefined) {
  if (hour === undefined) return { startsAtMs, state: "unwatched" as const };
  const { stored, acknowledged, refused, counted } = hour;
  const counts = [
    `${formatCount(acknowledged)} of ${stored === null ? "unknown" : formatCount(stored)} events acknowledged`,
    ...(refused === 0 ? [] : [`${formatCount(refused)} refused`]),
    ...(counted === null ? [] : [`${formatCount(counted)} counted there`]),
  ];
  return { startsAtMs, state: LOOKS[hour.arrival], note: counts.join(", ") };
}

function Refused({ destination, events }: { readonly destination: string; readonly events: number }) {
  const refused = useOperation("forward.refused", { destination, zone: useZones().asked, limit: 100 });
  return (
    <details>
      <summary className="lw-note">{many(events, "refused event")}</summary>
      <QueryView query={refused} asking="refused events">
        {({ items }) => (
          <ul>
            {items.map(({ zoneId, occurredAt, logId, reason }) => (
              <li key={`${zoneId} ${logId}`} className="lw-note">
                <Moment at={occurredAt} /> <Payload text={logId} /> <Payload prose text={reason} />
              </li>
            ))}
          </ul>
        )}
      </QueryView>
    </details>
  );
}
