import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Schedule } from "#model/schedule.ts";

/** Writes a configuration file with these cron expressions and destinations, and returns the variable that names the file. */
export function writeSchedule(
  folder: string,
  schedule: Partial<Schedule>,
  forward: Readonly<Record<string, object>> = {},
): { readonly LONGWATCH_CONFIG: string } {
  const file = path.join(folder, "schedule.yaml");
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, JSON.stringify({ schedule, forward }));
  return { LONGWATCH_CONFIG: file };
}
