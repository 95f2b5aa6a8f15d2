import { formatDuration } from "#lib/format.ts";
import { type Item, useOperation } from "../../api/ask.ts";
import { Ago } from "../../components/ago.tsx";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { formatCount } from "../../look/words.ts";

type Job = Item<"jobs.list">;

const COLUMNS: readonly Column<Job>[] = [
  { head: "job", cell: ({ job }) => job },
  {
    head: "last success",
    cell: ({ lastSuccessAt }) =>
      lastSuccessAt === null ? <span className="lw-dim">not here yet</span> : <Ago at={lastSuccessAt} />,
  },
  { head: "done", className: "lw-number", cell: ({ runs: { done = 0 } }) => formatCount(done) },
  { head: "failed", className: "lw-number", cell: Failed },
  { head: "mean", className: "lw-number lw-wide", cell: ({ meanSeconds }) => wordMean(meanSeconds) },
  {
    head: "last result",
    className: "lw-wide",
    cell: ({ tick }) => tick?.lastRun?.why ?? tick?.lastRun?.result,
  },
  {
    head: "next",
    className: "lw-wide",
    cell: ({ tick }) => (
      <span className={tick?.nextAt == null ? "lw-dim" : undefined} title={tick?.expression ?? undefined}>
        {tick?.nextAt == null ? (tick?.off ?? "when there is work") : <Ago at={tick.nextAt} />}
      </span>
    ),
  },
];

/** The background jobs: last success, duration, failures and next run of each. */
export function Jobs() {
  const jobs = useOperation("jobs.list", {}, { refetchInterval: 15_000 });
  const about = "runs of the process that answers; schedule and last results of the whole installation";
  return (
    <QueryPanel title="Jobs" about={about} query={jobs}>
      {({ items }) => <DataTable rows={items} idOf={({ job }) => job} columns={COLUMNS} />}
    </QueryPanel>
  );
}

function Failed({ runs }: Job) {
  const others = Object.entries(runs).filter(([outcome]) => outcome !== "done");
  const failed = others.reduce((sum, [, count]) => sum + count, 0);
  if (failed === 0) return null;
  const outcomes = others.map(([outcome, count]) => `${outcome}: ${count}`);
  return (
    <span className="lw-warn" title={outcomes.join(", ")}>
      {formatCount(failed)}
    </span>
  );
}

function wordMean(seconds: number | null): string {
  if (seconds === null) return "";
  return seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : formatDuration(seconds * 1_000);
}
