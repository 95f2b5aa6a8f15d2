import { Button } from "@mantine/core";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { many } from "#lib/format.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import {
  type CoverageHour,
  type CoverageRules,
  useCoverageHour,
  useCoverageRules,
  useStartRun,
} from "../../api/coverage.ts";
import { useMay } from "../../api/session.ts";
import { Moment } from "../../components/ago.tsx";
import { STATE_WORDS } from "../../components/coverage-strip.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { formatCount, formatMoment, formatUtc, NO_VALUE } from "../../look/words.ts";
import { useNow } from "../../state/now.tsx";
import { useRuleLink } from "../../state/rule-link.ts";
import { toUrlTime } from "../../state/span.ts";
import { usePageLink, useUrlState } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import classes from "./coverage.module.css";
import { type Look, readEvidence } from "./read-evidence.ts";

interface Props {
  readonly zoneId: number;
  readonly hourMs: number;
}

/** The evidence of one hour: what each route showed, the counts by rule, and the seal or the gap with its reason. */
export function HourPanel({ zoneId, hourMs }: Props) {
  const hour = useCoverageHour(zoneId, hourMs);
  const rules = useCoverageRules(zoneId, hourMs);
  const zoneName = useZoneTitle();
  const { change } = useUrlState();
  const place = useRef<HTMLDivElement>(null);
  const isThere = hour.data !== undefined;
  // On a phone the strips fill the screen, and the evidence would be below its end.
  useEffect(() => {
    if (isThere) place.current?.scrollIntoView({ block: "nearest" });
  }, [isThere]);
  return (
    <div ref={place}>
      <Panel
        title={`${zoneName(zoneId)}, ${formatMoment(hourMs)}`}
        about={`one hour from ${formatUtc(hourMs)}`}
        actions={
          <Button
            variant="subtle"
            color="gray"
            leftSection={<Icon name="close" size={12} />}
            onClick={() => change({ hour: null })}
          >
            Close
          </Button>
        }
        flush
      >
        <QueryView query={hour} rows={4} asking="the evidence of the hour">
          {(found) =>
            found === null ? (
              <Empty>Longwatch knows nothing of this hour.</Empty>
            ) : (
              <Evidence hour={found} zoneId={zoneId} hourMs={hourMs} />
            )
          }
        </QueryView>
        <QueryView query={rules} rows={4} asking="the counts by rule">
          {(found) => <RuleCounts found={found} zoneId={zoneId} />}
        </QueryView>
      </Panel>
    </div>
  );
}

function Evidence({ hour, zoneId, hourMs }: Props & { readonly hour: CoverageHour }) {
  const { state, storedCount, upstreamCount, gapReason, notSealedBecause, sealedAt, reopenedAt } = hour;
  const looks = readEvidence(hour.evidence);
  const reason = gapReason ?? notSealedBecause;
  return (
    <div className={classes["evidence"]}>
      <p className={classes["verdict"]} data-state={state}>
        <b>{STATE_WORDS[state]}.</b> {reason === null ? "" : <Payload prose text={reason} />}
      </p>
      <div className={classes["facts"]}>
        <span>
          stored <b>{formatCount(storedCount)}</b>
        </span>
        <span>
          the platform counts <b>{upstreamCount === null ? "not read yet" : formatCount(upstreamCount)}</b>
        </span>
        {hour.missingCells > 0 ? (
          <span className="lw-fire">{hour.missingCells} rules with events missing here</span>
        ) : null}
        {hour.surplusCells > 0 ? <span>{hour.surplusCells} rules with more events here</span> : null}
        {hour.searchedThrough === null ? null : (
          <span>
            searched to <Moment at={hour.searchedThrough} />
          </span>
        )}
        {hour.reconciledAt === null ? null : (
          <span>
            compared <Moment at={hour.reconciledAt} />
          </span>
        )}
        {sealedAt === null ? null : (
          <span>
            sealed <Moment at={sealedAt} />
          </span>
        )}
        {reopenedAt === null ? null : (
          <span className="lw-warn">
            seal withdrawn <Moment at={reopenedAt} />: <Payload prose text={hour.reopenReason ?? ""} />
          </span>
        )}
      </div>
      {looks.length === 0 ? null : <Looks looks={looks} storedCount={storedCount} />}
      <HourActs zoneId={zoneId} hourMs={hourMs} />
      {hour.evidence === null ? null : (
        <details className="lw-note">
          <summary>Everything that is recorded as evidence</summary>
          <pre className={classes["raw"]} tabIndex={0} aria-label="Recorded evidence">
            <Payload text={JSON.stringify(hour.evidence, null, 2).replaceAll("\n", " ")} />
          </pre>
        </details>
      )}
    </div>
  );
}

function Looks({ looks, storedCount }: { readonly looks: readonly Look[]; readonly storedCount: number }) {
  return (
    <table className="lw-table">
      <thead>
        <tr>
          <th>what the platform showed</th>
          <th className="lw-number">events</th>
          <th className="lw-wide">looked at</th>
          <th className="lw-wide">the same since</th>
        </tr>
      </thead>
      <tbody>
        {looks.map(({ route, count, at, since }) => (
          <tr key={route}>
            <td>{route}</td>
            <td className="lw-number">
              {formatCount(count)} {count === storedCount ? "= stored" : `of ${formatCount(storedCount)}`}
            </td>
            <td className="lw-wide">{at === null ? "" : <Moment at={at} seconds />}</td>
            <td className="lw-wide">{since === null ? "" : <Moment at={since} seconds />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Look at its events, compare it again, or read it again while the platform has it. */
function HourActs({ zoneId, hourMs }: Props) {
  const mayAct = useMay("act");
  const nowMs = useNow();
  const link = usePageLink();
  const start = useStartRun();
  const to = Math.min(hourMs + HOUR_MS, nowMs - 1_000);
  const isKept = hourMs > nowMs - 3 * DAY_MS && hourMs < to;
  const run = (kind: "backfill" | "verify") =>
    start.mutate({
      kind,
      zone: zoneId,
      from: new Date(hourMs).toISOString(),
      to: new Date(to).toISOString(),
      ids: kind === "verify",
    });
  return (
    <>
      <div className={classes["acts"]}>
        <Button
          variant="default"
          component={Link}
          href={link("/explorer", {
            zone: String(zoneId),
            span: null,
            from: toUrlTime(hourMs),
            to: toUrlTime(hourMs + HOUR_MS),
          })}
        >
          See its events
        </Button>
        {mayAct ? (
          <Button variant="default" loading={start.isPending} onClick={() => run("verify")}>
            Verify this hour
          </Button>
        ) : null}
        {mayAct && isKept ? (
          <Button variant="default" loading={start.isPending} onClick={() => run("backfill")}>
            Read it again
          </Button>
        ) : null}
      </div>
      {start.isSuccess ? (
        <p role="status" className="lw-note">
          Started. The result appears below, under "Verify and read again".
        </p>
      ) : null}
      {start.error === null ? null : <ProblemBox thrown={start.error} />}
    </>
  );
}

function RuleCounts({ found, zoneId }: { readonly found: CoverageRules; readonly zoneId: number }) {
  const link = useRuleLink();
  const { items, comparedAt, passes } = found;
  return (
    <>
      {passes.length === 0 ? null : (
        <p className={classes["passes"]}>
          List passes:{" "}
          {passes.map(({ pass, pages, entries, readAt }, index) => (
            <span key={pass}>
              {index > 0 ? "; " : ""}pass {pass} stored {formatCount(entries)} entries of{" "}
              {many(pages, "page")}, <Moment at={readAt} />
            </span>
          ))}
        </p>
      )}
      {items.length === 0 ? (
        <Empty>No event of this hour is counted.</Empty>
      ) : (
        <table className="lw-table">
          <thead>
            <tr>
              <th>rule</th>
              <th className="lw-number">stored</th>
              <th className="lw-number">the platform</th>
              <th className="lw-number lw-wide">repairs</th>
            </tr>
          </thead>
          <tbody>
            {items.map(({ ruleId, title, stored, platform, repairs }) => (
              <tr key={ruleId}>
                <td>
                  <Link href={link(zoneId, ruleId)}>
                    <Payload prose text={ruleId} none={NO_VALUE} />
                  </Link>{" "}
                  {title ?? ""}
                </td>
                <td className="lw-number">{formatCount(stored)}</td>
                <td className={platform === null || platform === stored ? "lw-number" : "lw-number lw-fire"}>
                  {platform === null || comparedAt === null ? "not asked yet" : formatCount(platform)}
                </td>
                <td className="lw-number lw-wide">{repairs === 0 ? "" : repairs}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
