/** The settings as a table, and where they were read. */

import path from "node:path";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { type Config, describeConfig } from "#config/config.ts";
import { formatDuration } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { escapeText } from "#lib/text.ts";
import { TICK_NAMES, TICKS, type Tick } from "#model/schedule.ts";

const SCHEDULE = `## Schedule

Each tick is a cron expression of six fields: second, minute, hour, day of month, month, day of week; UTC. The file that
\`LONGWATCH_CONFIG\` names changes it under \`schedule\`; the next start applies the change:

\`\`\`yaml
schedule:
  poll-events: "*/10 * * * * *"    # every ten seconds, in quotes
  archive-days: "0 15 2-6 * * *"   # five times in the night
\`\`\`

\`config check\` names every wrong expression and shows the next runs of the others. Each line below has the default and the longest
pause; an expression with a longer pause is refused, with the reason. \`jobs list\` shows the last and the next run of each tick, and
why a run did nothing. Ticks with the emulated platform are more frequent.

Zones are polled every ten seconds if all polls then take at most half of the request budget (\`EDGE_REQUESTS_PER_SECOND\`): up to 50
zones within ten requests a second. With more zones the pause is longer: 20 seconds with 100 zones, 30 with 150. An expression in the file
wins.
`;
const BEGIN = "<!-- config -->";
const END = "<!-- /config -->";

/** Returns two Markdown lists: one line per variable, and one line per tick of the configuration file's schedule. */
export function configTable(): string {
  const variables = describeConfig().map(({ variables: names, rule, fallback, description }) => {
    const standard = fallback === null ? "" : `, default ${code(fallback)}`;
    return `- ${names.map(code).join(", ")}${standard}: ${description} (${rule})`;
  });
  const ticks = TICK_NAMES.map((name) => {
    const { expression, slowest, longestMs }: Tick = TICKS[name];
    const fallback = slowest === undefined ? code(expression) : `${code(expression)} to ${code(slowest)}`;
    return `- ${code(name)}: ${fallback}, ${formatDuration(longestMs)}`;
  });
  return `${variables.join("\n")}\n\n${SCHEDULE}\n${ticks.join("\n")}\n`;
}

/**
 * Returns the text with a new table between its markers.
 * @throws {Error} when the text does not have both markers, in order.
 */
export function withConfigTable(text: string): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin === -1 || end < begin)
    throw new Error(
      `cannot write the table: the file must have the markers ${BEGIN} and ${END}, in this order`,
    );
  return `${text.slice(0, begin + BEGIN.length)}\n\n${configTable()}\n${text.slice(end)}`;
}

function code(text: string): string {
  return `\`${text}\``;
}

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
