import { Button } from "@mantine/core";
import { Link } from "wouter";
import { formatNumber } from "#lib/format.ts";
import type { RuleKey } from "../../api/rule.ts";
import { Payload } from "../../components/payload.tsx";
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
  return (
    <section className="lw-head" data-firing={open !== undefined || undefined}>
      <h1 className={classes["title"]}>
        Rule <Payload text={rule} none={NO_VALUE} /> {data?.title ?? ""}
      </h1>
      <div className={classes["line"]}>
        <span>{zoneName(zone)}</span>
        {open === undefined ? null : <b className="lw-fire">● spikes now</b>}
        {data === undefined ? null : (
          <span>
            in force: z <b>{formatNumber(data.settings.z)}</b>, floor{" "}
            <b>{formatNumber(data.settings.floor)}</b> events
          </span>
        )}
      </div>
      <div className={classes["buttons"]}>
        <Button
          size="xs"
          variant="default"
          component={Link}
          href={link("/explorer", { zone: String(zone), is: `rule:${rule}` })}
        >
          See its events
        </Button>
        <Button
          size="xs"
          variant="default"
          component={Link}
          href={link("/alerts", { zone: String(zone), rule, state: "all" })}
        >
          See its alerts
        </Button>
      </div>
    </section>
  );
}
