import type { Metrics } from "#faces/http/metrics.ts";
import type { IngestObserver } from "#stages/ingest/ingest-observer.ts";

/** Counts the events that ingest stores. */
export function measureIngest(metrics: Metrics): IngestObserver {
  return {
    pageStored({ route, zoneId, entries, inserted, filled, quarantined, held, commitMs }) {
      metrics.pageCommit.observe({ route }, commitMs / 1_000);
      const zone = metrics.labelsOf(zoneId);
      metrics.pages.inc({
        route,
        ...zone,
        result: inserted + filled + quarantined + held > 0 ? "changed" : "known",
      });
      metrics.events.inc({ ...zone, route, result: "new" }, inserted);
      metrics.events.inc({ ...zone, route, result: "quarantined" }, quarantined);
      metrics.events.inc({ ...zone, route, result: "held" }, held);
      const known = Math.max(0, entries - inserted - quarantined - held);
      metrics.events.inc({ ...zone, route, result: "known" }, known);
    },
  };
}
