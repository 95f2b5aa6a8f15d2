import type { Config } from "#config/config.ts";
import { writeAuditEntry } from "#db/keys/audit-trail.ts";
import { countUnfiltered } from "#operations/search/count-unfiltered.ts";
import { describeExport } from "#operations/search/describe-export.ts";
import { exportEvents } from "#operations/search/export-events.ts";
import { mapExportLines, mapLines, toNdjsonLine, withHeader } from "#stages/archive/csv/export-lines.ts";
import { finishOcsfLine } from "#stages/archive/ocsf/finish-ocsf-line.ts";
import { requireZones } from "../options/require-known.ts";
import { withSearch } from "../search/with-search.ts";
import type { StoreIo } from "../store/store-command.ts";
import { saveExport, type WantedExport } from "./save-export.ts";

/** Exports the events of the database and of the archive's files. */
export function exportHere(io: StoreIo, config: Config, wanted: WantedExport, actor: string): Promise<void> {
  const { zoneId, plan, form } = wanted;
  return withSearch(io, config, async (deps, { db }, signal) => {
    await requireZones(db, config, [zoneId]);
    await writeAuditEntry(db, describeExport(actor, zoneId, { plan, isMasked: false }));
    const source = {
      countUnfiltered: (stopped: AbortSignal) => countUnfiltered(deps, zoneId, plan, stopped),
      read(onReached: (from: number) => void) {
        const lineForm = {
          csv: "csv",
          ndjson: "json",
          ocsf: { zoneId, vendor: config.platformVendor, actions: config.alerting.actions },
        } as const;
        const options = { form: lineForm[form], signal, onReached };
        const lines = exportEvents((_, work) => work(deps), zoneId, plan, options);
        if (form === "csv") return withHeader(lines);
        return form === "ocsf"
          ? mapLines(lines, (line) => finishOcsfLine(line))
          : mapExportLines(lines, toNdjsonLine);
      },
    };
    await saveExport(io, wanted, source, signal);
  });
}
