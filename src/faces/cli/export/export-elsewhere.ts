import { EXPORT_HEADER } from "#archive/rules/export-lines.ts";
import { searchEvents } from "#archive/search/search-events.ts";
import type { RemoteService } from "#config/config.ts";
import { askRemotely, readRemotely } from "../operations/ask-remotely.ts";
import { untilStopped } from "../store/open-store.ts";
import type { StoreIo } from "../store/store-command.ts";
import { saveExport, type WantedExport } from "./save-export.ts";

/** Exports the events of a service elsewhere. `request` is what its API takes. */
export function exportElsewhere(
  io: StoreIo,
  remote: RemoteService,
  wanted: WantedExport,
  request: object,
): Promise<void> {
  const { zoneId, form } = wanted;
  const path = `/api/v1/zones/${zoneId}/events/export`;
  const [type, begins] = form === "csv" ? ["text/csv", EXPORT_HEADER] : ["application/x-ndjson", ""];
  return untilStopped(io, (signal) => {
    const source = {
      read: () => readRemotely(remote, { path, body: { ...request, format: form }, signal, type, begins }),
      async countUnfiltered(stopped: AbortSignal) {
        const input = { ...request, zone: String(zoneId), page: 0, pageSize: 1 };
        const { total } = (await askRemotely(remote, stopped)(searchEvents, input)) as { total: number };
        return total;
      },
    };
    return saveExport(io, wanted, source, signal);
  });
}
