import { useUrlState } from "../state/url-state.ts";
import { ArchiveDays } from "./coverage-page/archive-days.tsx";
import { Destinations } from "./coverage-page/destinations.tsx";
import { HourPanel } from "./coverage-page/hour-panel.tsx";
import { Quarantine } from "./coverage-page/quarantine.tsx";
import { Runs } from "./coverage-page/runs.tsx";
import { ZoomStrip } from "./coverage-page/zoom-strip.tsx";

const HOUR = /^(\d{1,10})\/(\d{4}-\d\d-\d\dT\d\d:00:00Z)$/;

/** Whether every hour that was watched is complete, and the evidence for it. */
export default function CoveragePage() {
  const { params } = useUrlState();
  const [, zone = "", hour = ""] = HOUR.exec(params.get("hour") ?? "") ?? [];
  const hourMs = Date.parse(hour);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Coverage</h1>
      <ZoomStrip picked={Number.isNaN(hourMs) ? null : { zoneId: Number(zone), hourMs }} />
      {Number.isNaN(hourMs) ? null : (
        <HourPanel key={params.get("hour")} zoneId={Number(zone)} hourMs={hourMs} />
      )}
      <Quarantine />
      <Destinations />
      <ArchiveDays />
      <Runs />
    </div>
  );
}
