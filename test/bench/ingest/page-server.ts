/**
 * The platform's date-paged list on a port of its own process: every page is rendered and gzipped before the first
 * request, so that serving costs next to nothing on the cores it shares with what is measured. Sends what it holds to
 * its parent when it is ready, and ends with it.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { FIRST_ZONE, type RenderedPage, renderZone, WARM_UP_ZONE } from "./history.ts";

const WARM_UP_EVENTS = 60_000;

/** The message to the parent process. */
export interface ServedPages {
  readonly url: string;
  readonly zones: readonly number[];
  readonly events: number;
  readonly pages: number;
  /** Bytes of the JSON, before compression. */
  readonly bytes: number;
}

const [sessions = 1, events = 0] = process.argv.slice(2).map(Number);
const zones = Array.from({ length: sessions }, (_, index) => FIRST_ZONE + index);
const measured = new Map(zones.flatMap((zone) => [...renderZone(zone, events / sessions)]));
const served = new Map<string, RenderedPage>([...measured, ...renderZone(WARM_UP_ZONE, WARM_UP_EVENTS)]);

const server = createServer((request, response) => {
  const page = served.get(request.url ?? "");
  if (page === undefined) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    "content-type": "application/json",
    "content-encoding": "gzip",
    "content-length": page.gzip.length,
  });
  response.end(page.gzip);
});
server.keepAliveTimeout = 60_000;
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => {
  const all = [...measured.values()];
  const told: ServedPages = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    zones,
    events: all.reduce((sum, page) => sum + page.entries, 0),
    pages: all.length,
    bytes: all.reduce((sum, page) => sum + page.bytes, 0),
  };
  process.send?.(told);
});
