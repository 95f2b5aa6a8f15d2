import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { readZoneArchives } from "#db/archive/archived-days.ts";
import type { DataSet } from "./data-set.ts";
import { ASKED_ZONE } from "./day-events.ts";

/** Disk and CPU of archiving, per event. */
export interface ArchiveFigures {
  readonly eventBytes: number;
  /** Of the day whose events have records. */
  readonly recordBytes: number;
  /** Microseconds in all processes; null if the data set was archived by an earlier version of the benchmark. */
  readonly cpuUs: number | null;
}

export async function readArchiveFigures({
  postgres: { database },
  folder,
}: DataSet): Promise<ArchiveFigures> {
  const zone = (await readZoneArchives(database.db)).find(({ zoneId }) => zoneId === ASKED_ZONE);
  const records = (await listValidFiles(database.db, { zoneId: ASKED_ZONE, kind: "records" }))[0];
  const file = path.join(folder, "archiving.json");
  const { archived, cpuMs } = existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as { archived: number; cpuMs: number })
    : { archived: 0, cpuMs: 0 };
  return {
    eventBytes: (zone?.eventBytes ?? 0) / (zone?.events ?? 1),
    recordBytes: (records?.bytes ?? 0) / (records?.rows ?? 1),
    cpuUs: archived === 0 ? null : (cpuMs * 1_000) / archived,
  };
}
