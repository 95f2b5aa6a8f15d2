import { usePrivacy } from "../../api/operations.ts";
import { Ago, Moment } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { useZoneTitle } from "../../state/zones.ts";
import classes from "./operations.module.css";

/** How long data is kept, and what was erased. No erasure says which address it covers. */
export function Privacy() {
  const privacy = usePrivacy();
  const zoneName = useZoneTitle();
  return (
    <QueryView query={privacy} rows={6} asking="retention and erasures">
      {({ retention, erasures }) => (
        <>
          <Panel title="Retention" about="days" flush>
            <div className={classes["facts"]}>
              <span>
                raw records <b>{retention.rawDays}</b>
              </span>
              <span>
                full addresses <b>{retention.ipDays}</b>
              </span>
              <span>
                events <b>{retention.eventDays}</b>
              </span>
              <span>
                counts <b>{retention.rollUpDays}</b>
              </span>
            </div>
          </Panel>
          <Panel title="Erasures" about="the newest 200; longwatch erase starts one" flush>
            {erasures.length === 0 ? <Empty>No address was erased.</Empty> : null}
            <ul className="lw-rows">
              {erasures.map(({ id, requestedAt, untilAt, endedAt, zone, family, prefix, counts }) => (
                <li key={id}>
                  <div>
                    <b>Erasure {id}</b>, {family === 6 ? "IPv6" : "IPv4"}
                    {(family === 6 ? 128 : 32) === prefix ? " address" : ` network of prefix /${prefix}`} in{" "}
                    {zone === null ? "every zone" : zoneName(zone)}
                    <div className="lw-note">
                      requested <Ago at={requestedAt} />, covers events until <Moment at={untilAt} />
                      {Object.entries(counts)
                        .filter(([, count]) => count > 0)
                        .map(([name, count]) => `, ${formatCount(count)} ${name}`)
                        .join("")}
                    </div>
                  </div>
                  <span className={endedAt === null ? "lw-warn" : "lw-note"}>
                    {endedAt === null ? "runs" : <Ago at={endedAt} />}
                  </span>
                </li>
              ))}
            </ul>
          </Panel>
        </>
      )}
    </QueryView>
  );
}
