import { formatDuration, many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { useOverview } from "../../api/overview.ts";
import { useStatus } from "../../api/status.ts";
import { Ago } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatBytes, formatCount } from "../../look/words.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
import classes from "./overview.module.css";

/** How fresh the record is, zone by zone. */
export function IngestLine() {
  const status = useStatus();
  const { zones } = useZones();
  const budget = useOverview().data?.requestBudget ?? null;
  return (
    <Panel title="Ingest" flush>
      <QueryView query={status} rows={1}>
        {({ notificationsPending, archive }) => (
          <>
            {zones.map((zone) => (
              <div key={zone.id} className={classes["ingest"]}>
                <b>{zoneTitle(zone)}</b>
                <span>
                  last poll{" "}
                  <b>{zone.searchedThrough === null ? "never" : <Ago at={zone.searchedThrough} />}</b>
                </span>
                <span>
                  newest event <b>{zone.newestEventAt === null ? "none" : <Ago at={zone.newestEventAt} />}</b>
                </span>
                <span>
                  stored in 4 days <b>{formatCount(zone.recentEvents)} events</b>
                </span>
                {archive
                  .filter(({ zoneId }) => zoneId === zone.id)
                  .map(({ zoneId, days, eventBytes, recordBytes, damagedFiles }) => (
                    <span key={zoneId}>
                      archive{" "}
                      <b>
                        {many(days, "day")}, {formatBytes(eventBytes + recordBytes)}
                      </b>
                      {damagedFiles === 0 ? null : (
                        <b className="lw-fire">, {formatCount(damagedFiles)} files damaged</b>
                      )}
                    </span>
                  ))}
                <span>
                  {zone.hoursToLoss === null ? (
                    "no hour can be lost"
                  ) : (
                    <>
                      oldest open hour is deleted in <b>{formatDuration(zone.hoursToLoss * HOUR_MS)}</b>
                    </>
                  )}
                </span>
              </div>
            ))}
            <div className={classes["ingest"]}>
              {budget === null ? null : (
                <span>
                  requests to the platform:{" "}
                  <b>
                    {budget.isPaused ? "paused" : `${formatCount(Math.floor(budget.tokens))} allowed now`}
                  </b>
                  , then <b>{formatCount(budget.ratePerSecond)}</b> a second
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
      </QueryView>
    </Panel>
  );
}
