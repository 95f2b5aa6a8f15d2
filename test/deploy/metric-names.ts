import { createMetrics } from "#faces/http/metrics.ts";

/** Returns the names of all series that a scrape of the service can contain, those of histograms included. */
export async function ownMetrics(): Promise<string[]> {
  const text = await createMetrics().render();
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return types.flatMap(([, name = "", type]) =>
    type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
}

/** Returns the metrics of a PromQL expression; `up` belongs to Prometheus itself. */
export function metricsIn(expression: string): string[] {
  return [...new Set(expression.match(/\b(?:longwatch|process|nodejs)_\w+/g) ?? [])];
}
