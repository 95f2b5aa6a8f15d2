import { formatDuration, many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { describeLearning } from "#model/rules.ts";
import type { Output } from "../../api/ask.ts";
import { useOverview } from "../../api/overview.ts";
import { useStatus, type Zone } from "../../api/status.ts";
import { Ago } from "../../components/ago.tsx";
import { Fact } from "../../components/fact.tsx";
import { Now, QueryPanel } from "../../components/panel.tsx";
import { formatBytes, formatCount } from "../../look/words.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";

/** How fresh the record is, zone by zone. */
export function IngestLine() {
  const { zones } = useZones();
  const budget = useOverview().data?.requestBudget ?? null;
  return (
    <QueryPanel title="Ingest" query={useStatus()}>
      {({ notificationsPending, archive }) => (
        <>
          {zones.map((zone) => (
            <ZoneLine key={zone.id} zone={zone} archive={archive.find(({ zoneId }) => zoneId === zone.id)} />
          ))}
          <div className="lw-facts lw-hint">
            {budget === null ? null : (
              <span>
                requests to the platform:{" "}
                <b>{budget.isPaused ? "paused" : `${formatCount(Math.floor(budget.tokens))} allowed`}</b>{" "}
                <Now />, then <b>{formatCount(budget.ratePerSecond)}</b> a second
              </span>
            )}
            {notificationsPending > 0 ? (
              <span>
                <b>{formatCount(notificationsPending)}</b> notifications wait
              </span>
            ) : null}
          </div>
        </>
      )}
    </QueryPanel>
  );
}

interface ZoneProps {
  readonly zone: Zone;
  readonly archive: Output<"status.show">["archive"][number] | undefined;
}

function ZoneLine({ zone, archive }: ZoneProps) {
  const { searchedThrough, newestEventAt, recentEvents, hoursToLoss, learningUntil } = zone;
  return (
    <div className="lw-facts lw-hint">
      <b>{zoneTitle(zone)}</b>
      <Fact say="last poll">{searchedThrough === null ? "never" : <Ago at={searchedThrough} />}</Fact>
      <Fact say="newest event">{newestEventAt === null ? "none" : <Ago at={newestEventAt} />}</Fact>
      <Fact say="stored in 4 days">{formatCount(recentEvents)} events</Fact>
      {archive === undefined ? null : (
        <span>
          archive{" "}
          <b>
            {many(archive.days, "day")}, {formatBytes(archive.eventBytes + archive.recordBytes)}
          </b>
          {archive.damagedFiles === 0 ? null : (
            <b className="lw-fire">, {formatCount(archive.damagedFiles)} files damaged</b>
          )}
        </span>
      )}
      {learningUntil === null ? null : <span>{describeLearning(Date.parse(learningUntil))}</span>}
      {hoursToLoss === null ? <span>no hour can be lost</span> : null}
      <Fact say="oldest open hour is deleted in">
        {hoursToLoss === null ? null : formatDuration(hoursToLoss * HOUR_MS)}
      </Fact>
    </div>
  );
}
