import { formatDuration } from "#lib/format.ts";
import { type Job, useJobs } from "../../api/operations.ts";
import { Ago } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatCount } from "../../look/words.ts";

/** The background jobs: last success, duration, failures and next run of each. */
export function Jobs() {
  const jobs = useJobs();
  return (
    <Panel
      title="Jobs"
      about="runs of the process that answers; schedule and last results of the whole installation"
      flush
    >
      <QueryView query={jobs} rows={10} asking="the jobs">
        {({ items }) => (
          <table className="lw-table">
            <thead>
              <tr>
                <th>job</th>
                <th>last success</th>
                <th className="lw-number">done</th>
                <th className="lw-number">failed</th>
                <th className="lw-number lw-wide">mean</th>
                <th className="lw-wide">last result</th>
                <th className="lw-wide">next</th>
              </tr>
            </thead>
            <tbody>
              {items.map((job) => (
                <JobRow key={job.job} job={job} />
              ))}
            </tbody>
          </table>
        )}
      </QueryView>
    </Panel>
  );
}

function JobRow({ job: { job, runs, meanSeconds, lastSuccessAt, tick } }: { readonly job: Job }) {
  const { done = 0, ...others } = runs;
  const failed = Object.values(others).reduce((sum, count) => sum + count, 0);
  return (
    <tr>
      <td>{job}</td>
      <td>
        {lastSuccessAt === null ? <span className="lw-dim">not here yet</span> : <Ago at={lastSuccessAt} />}
      </td>
      <td className="lw-number">{formatCount(done)}</td>
      <td
        className={failed > 0 ? "lw-number lw-warn" : "lw-number"}
        title={Object.entries(others)
          .map(([outcome, count]) => `${outcome}: ${count}`)
          .join(", ")}
      >
        {failed === 0 ? "" : formatCount(failed)}
      </td>
      <td className="lw-number lw-wide">
        {meanSeconds === null
          ? ""
          : meanSeconds < 1
            ? `${Math.round(meanSeconds * 1_000)} ms`
            : formatDuration(meanSeconds * 1_000)}
      </td>
      <td className="lw-wide">{tick?.lastRun?.why ?? tick?.lastRun?.result}</td>
      <td className="lw-wide" title={tick?.expression ?? undefined}>
        {tick?.nextAt == null ? (
          <span className="lw-dim">{tick?.off ?? "when there is work"}</span>
        ) : (
          <Ago at={tick.nextAt} />
        )}
      </td>
    </tr>
  );
}
