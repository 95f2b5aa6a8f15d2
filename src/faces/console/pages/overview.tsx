import { Attention } from "./overview/attention.tsx";
import { ChangedRules } from "./overview/changed-rules.tsx";
import { EventChart } from "./overview/event-chart.tsx";
import { IngestLine } from "./overview/ingest-line.tsx";
import classes from "./overview/overview.module.css";
import { RecentCoverage } from "./overview/recent-coverage.tsx";

/** Is anything wrong, and is the record whole? */
export default function OverviewPage() {
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Overview</h1>
      <Attention />
      <EventChart />
      <div className={classes["columns"]}>
        <ChangedRules />
        <RecentCoverage />
      </div>
      <IngestLine />
    </div>
  );
}
