import path from "node:path";
import { readRuntimeFile } from "#app/runtime-file.ts";
import type { Config } from "#config/config.ts";
import { asCalled } from "#lib/process.ts";
import { escapeText } from "#lib/text.ts";

type Found = Pick<Config, "file" | "dataDir">;

/** Returns which configuration file was read, and which one the running service uses if it is another. */
export function describeFile({ file, dataDir }: Found): string {
  const service = readRuntimeFile(dataDir);
  const its = service?.configFile ?? null;
  const own = file === null ? "No configuration file was read." : `Configuration file: ${escapeText(file)}.`;
  if (service === null) {
    return file === null
      ? `${own} LONGWATCH_CONFIG names the file, here and for the service. No service runs on ${escapeText(path.resolve(dataDir))}.`
      : own;
  }
  if (its === file)
    return `${own} The running service uses ${file === null ? "none either" : "the same file"}.`;
  if (its === null) return `${own} The running service uses none.`;
  return asCalled(
    `${own} The running service uses ${escapeText(its)}. To check that file: LONGWATCH_CONFIG=${escapeText(its)} npm run -s longwatch -- config check`,
  );
}
