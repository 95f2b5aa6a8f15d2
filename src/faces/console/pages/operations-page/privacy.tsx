import { useOperation } from "../../api/ask.ts";
import { Ago, Moment } from "../../components/ago.tsx";
import { Fact } from "../../components/fact.tsx";
import { Panel } from "../../components/panel.tsx";
import { Rows } from "../../components/rows.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";
import { useZoneTitle } from "../../state/zones.ts";

/** How long data is kept, and what was erased. No erasure says which address it covers. */
export function Privacy() {
  const privacy = useOperation("privacy.show", {});
  const zoneName = useZoneTitle();
  return (
    <QueryView query={privacy} rows={6} asking="retention and erasures">
      {({ retention: { rawDays, ipDays, eventDays, rollUpDays }, erasures }) => (
        <>
          <Panel title="Retention" about="days">
            <div className="lw-facts">
              <Fact say="raw records">{rawDays}</Fact>
              <Fact say="full addresses">{ipDays}</Fact>
              <Fact say="events">{eventDays}</Fact>
              <Fact say="counts">{rollUpDays}</Fact>
            </div>
          </Panel>
          <Panel title="Erasures" about="the newest 200; longwatch erase starts one" flush>
            <Rows of={erasures} none="No address was erased.">
              {({ id, requestedAt, untilAt, endedAt, zone, family, prefix, counts }) => (
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
              )}
            </Rows>
          </Panel>
        </>
      )}
    </QueryView>
  );
}
