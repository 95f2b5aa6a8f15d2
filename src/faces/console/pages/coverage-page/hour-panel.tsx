/** One hour: its state, its counts and its evidence. */
import { Stack } from "@mantine/core";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { many, showIso } from "#lib/format.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { type Output, useOperation } from "../../api/ask.ts";
import { type CoverageHour, useStartRun } from "../../api/queries.ts";
import { ActButton, SubtleButton } from "../../components/buttons.tsx";
import { STATE_WORDS } from "../../components/coverage-strip.tsx";
import { Fact, Json, Moment } from "../../components/facts.tsx";
import { DataTable, Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";
import { useNow } from "../../state/now.tsx";
import { usePageLink, useRuleLink, useUrlState } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { formatCount, formatMoment, formatUtc, NO_VALUE } from "../../style/words.ts";
import classes from "./coverage.module.css";

interface Props {
  readonly zoneId: number;
  readonly hourMs: number;
}

/** The evidence of one hour: what each route showed, the counts by rule, and the seal or the gap with its reason. */
export function HourPanel({ zoneId, hourMs }: Props) {
  const hour = useOperation(
    "coverage.list",
    { zone: zoneId, from: hourMs, to: hourMs + HOUR_MS, limit: 1 },
    { refetchInterval: 30_000, select: ({ items }) => items[0] ?? null },
  );
  const rules = useOperation("coverage.rules", { zone: zoneId, hour: hourMs }, { refetchInterval: 30_000 });
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
          <SubtleButton
            variant="subtle"
            color="gray"
            icon="close"
            word="Close"
            onClick={() => change({ hour: null })}
          />
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

function Evidence({ hour, ...props }: Props & { readonly hour: CoverageHour }) {
  const { state, storedCount, upstreamCount, missingCells, surplusCells, evidence } = hour;
  const reason = hour.gapReason ?? hour.notSealedBecause;
  return (
    <Stack gap={8} px={12} pb={12}>
      <div className={classes["verdict"]} data-state={state}>
        <b>{STATE_WORDS[state]}.</b>
        <Payload say=" " prose text={reason} />
      </div>
      <div className="lw-facts">
        <Fact say="stored">{formatCount(storedCount)}</Fact>
        <Fact say="the platform counts">
          {upstreamCount === null ? "not read yet" : formatCount(upstreamCount)}
        </Fact>
        <span className="lw-fire">
          {missingCells > 0 ? `${missingCells} rules with events missing here` : null}
        </span>
        <span>{surplusCells > 0 ? `${surplusCells} rules with more events here` : null}</span>
        <span>
          <Moment say="searched to " at={hour.searchedThrough} />
        </span>
        <span>
          <Moment say="compared " at={hour.reconciledAt} />
        </span>
        <span>
          <Moment say="sealed " at={hour.sealedAt} />
        </span>
        {hour.judgedAt === null ? null : (
          <span>
            <Moment say="judged " at={hour.judgedAt} /> ({hour.judgedWith})
          </span>
        )}
        <span className="lw-warn">{hour.isWaiting ? "copied and not judged yet" : null}</span>
        {hour.reopenedAt === null ? null : (
          <span className="lw-warn">
            seal withdrawn <Moment at={hour.reopenedAt} />: <Payload prose text={hour.reopenReason ?? ""} />
          </span>
        )}
      </div>
      <Looks hour={hour} />
      <HourActs {...props} />
      {evidence === null ? null : (
        <details className="lw-note">
          <summary>Everything that is recorded as evidence</summary>
          <Json of={evidence} label="Recorded evidence" />
        </details>
      )}
    </Stack>
  );
}

function Looks({ hour: { evidence, storedCount } }: { readonly hour: CoverageHour }) {
  const looks = readEvidence(evidence);
  if (looks.length === 0) return null;
  return (
    <DataTable
      rows={looks}
      idOf={({ route }) => route}
      columns={[
        { head: "what the platform showed", cell: ({ route }) => route },
        {
          head: "events",
          className: "lw-number",
          cell: ({ count }) =>
            `${formatCount(count)} ${count === storedCount ? "= stored" : `of ${formatCount(storedCount)}`}`,
        },
        { head: "looked at", className: "lw-wide", cell: ({ at }) => <Moment at={at} seconds /> },
        { head: "the same since", className: "lw-wide", cell: ({ since }) => <Moment at={since} seconds /> },
      ]}
    />
  );
}

/** Look at its events, compare it again, or read it again while the platform has it. */
function HourActs({ zoneId, hourMs }: Props) {
  const nowMs = useNow();
  const link = usePageLink();
  const start = useStartRun();
  const to = Math.min(hourMs + HOUR_MS, nowMs - 1_000);
  const isKept = hourMs > nowMs - 3 * DAY_MS && hourMs < to;
  const verify = {
    kind: "verify",
    zone: zoneId,
    from: new Date(hourMs).toISOString(),
    to: new Date(to).toISOString(),
    ids: true,
  } as const;
  const again = { ...verify, kind: "backfill", ids: false } as const;
  const hour = { span: null, from: showIso(hourMs), to: showIso(hourMs + HOUR_MS) };
  return (
    <>
      <div className="lw-bar">
        <SubtleButton word="See its events" href={link("/explorer", { zone: String(zoneId), ...hour })} />
        <ActButton word="Verify this hour" change={start} input={verify} />
        {isKept ? <ActButton word="Read it again" change={start} input={again} /> : null}
      </div>
      {start.isSuccess ? (
        <p role="status" className="lw-note">
          Started. The result appears below, under "Verify and read again".
        </p>
      ) : null}
      <ProblemBox thrown={start.error} />
    </>
  );
}

interface CountsProps {
  readonly found: Output<"coverage.rules">;
  readonly zoneId: number;
}

function RuleCounts({ found: { items, comparedAt, passes }, zoneId }: CountsProps) {
  const link = useRuleLink();
  return (
    <>
      {passes.length === 0 ? null : (
        <div className="lw-line lw-hint">
          List passes:{" "}
          {passes.map(({ pass, pages, entries, readAt }, index) => (
            <span key={pass}>
              {index > 0 ? "; " : ""}pass {pass} stored {formatCount(entries)} entries of{" "}
              {many(pages, "page")}, <Moment at={readAt} />
            </span>
          ))}
        </div>
      )}
      {items.length === 0 ? (
        <Empty>No event of this hour is counted.</Empty>
      ) : (
        <DataTable
          rows={items}
          idOf={({ ruleId }) => ruleId}
          columns={[
            {
              head: "rule",
              cell: ({ ruleId, title }) => (
                <>
                  <Link href={link(zoneId, ruleId)}>
                    <Payload prose text={ruleId} none={NO_VALUE} />
                  </Link>{" "}
                  {title ?? ""}
                </>
              ),
            },
            { head: "stored", className: "lw-number", cell: ({ stored }) => formatCount(stored) },
            {
              head: "the platform",
              className: "lw-number",
              cell: ({ platform, stored }) => (
                <span className={platform === null || platform === stored ? undefined : "lw-fire"}>
                  {platform === null || comparedAt === null ? "not asked yet" : formatCount(platform)}
                </span>
              ),
            },
            {
              head: "repairs",
              className: "lw-number lw-wide",
              cell: ({ repairs }) => (repairs === 0 ? "" : repairs),
            },
          ]}
        />
      )}
    </>
  );
}

/** The count of one hour that a route showed, and when. */
interface Look {
  readonly route: string;
  readonly count: number;
  readonly at: string | null;
  readonly since: string | null;
}

const ROUTES = { search: "the search", list: "the date-paged list", counts: "the counts by rule" } as const;

/** Reads the looks of an hour's evidence. Its form belongs to the service, so that what is not understood is left out. */
function readEvidence(evidence: unknown): Look[] {
  return Object.entries(ROUTES).flatMap(([name, route]) => {
    const look = memberOf(evidence, name);
    const count = memberOf(look, "count");
    if (typeof count !== "number") return [];
    return [{ route, count, at: timeOf(look, "at"), since: timeOf(look, "since") }];
  });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function timeOf(look: unknown, name: string): string | null {
  const at = memberOf(look, name);
  return typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null;
}
