import { formatNumber } from "#lib/format.ts";
import type { RuleKey } from "../../api/rule.ts";
import { Payload } from "../../components/payload.tsx";
import { QuietButton } from "../../components/quiet-button.tsx";
import { NO_VALUE } from "../../look/words.ts";
import { usePageLink } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import classes from "./rule.module.css";
import { useCurve } from "./use-curve.ts";

/** The rule, whether it spikes now, the sensitivity in force, and the ways to its events and alerts. */
export function RuleHead({ zone, rule }: RuleKey) {
  const zoneName = useZoneTitle();
  const link = usePageLink();
  const { data } = useCurve({ zone, rule }).series;
  const open = data?.spikes.find(({ closedAt }) => closedAt === null);
  const ways = {
    "See its events": link("/explorer", { zone: String(zone), is: `rule:${rule}` }),
    "See its alerts": link("/alerts", { zone: String(zone), rule, state: "all" }),
  };
  return (
    <section className="lw-head" data-firing={open !== undefined || undefined}>
      <h1 className={classes["title"]}>
        Rule <Payload text={rule} none={NO_VALUE} /> {data?.title ?? ""}
      </h1>
      <div className="lw-facts">
        <span>{zoneName(zone)}</span>
        {open === undefined ? null : <b className="lw-fire">● spikes now</b>}
        {data === undefined ? null : (
          <span>
            in force: z <b>{formatNumber(data.settings.z)}</b>, floor{" "}
            <b>{formatNumber(data.settings.floor)}</b> events
          </span>
        )}
      </div>
      <div className="lw-bar">
        {Object.entries(ways).map(([word, href]) => (
          <QuietButton key={word} size="xs" word={word} href={href} />
        ))}
      </div>
    </section>
  );
}
