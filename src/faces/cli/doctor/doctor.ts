import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { wrapText } from "#delivery/rules/message/text-width.ts";
import type { Finding, FindingLevel } from "#health/doctor/facts.ts";
import { judge } from "#health/doctor/judge.ts";
import { many } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { createProgressLine } from "#lib/progress-bar.ts";
import { toLine } from "#lib/text.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { pickPaint } from "../terminal/print.ts";
import { gatherFacts } from "./gather-facts.ts";

const HELP = `
The command examines: the access key, its roles and one search per zone; the clocks of the platform and of Postgres; the
version, settings and role of Postgres; policy and persistence of Redis; the disk, in days at today's rate; each channel by
a dry run that renders the test message and sends nothing; the issuer's discovery document; the modes of files; the live
processes and their versions; everything that alerts about Longwatch itself name. If
Postgres runs on another machine, its free space cannot be read: a note says how much the database will take. Every finding
that is not ok says what to do. The command changes nothing. Exit code 0 if there is no problem, else 1; warnings and notes
do not count.

Examples:
  npm run -s longwatch -- doctor
  npm run -s longwatch -- doctor --json`;

const MAX_CHARS = 500;
const NARROWEST = 60;
const WIDEST = 120;
const MARKS: Readonly<Record<FindingLevel, { readonly mark: string; readonly style: Style }>> = {
  ok: { mark: "ok", style: "green" },
  note: { mark: "note", style: "cyan" },
  warning: { mark: "warning", style: "yellow" },
  problem: { mark: "PROBLEM", style: "red" },
};
const MARK_COLUMNS = 9;
const CHECK_COLUMNS = 10;

export interface Examination {
  readonly config: Config;
  readonly configFile: string | null;
  readonly env: NodeJS.ProcessEnv;
}

/** `longwatch doctor`: examines everything that the service needs, and says what to do. */
export function doctorCommand(examine: () => Examination, io: StoreIo = createProcessIo()): Command {
  return storeCommand("doctor", HELP, io)
    .option("--json", "print the findings as JSON")
    .action(
      storeAction<{ json?: true }>(io, async ({ json }, read) => {
        read.finish();
        const line = createProgressLine(io.stderr, io.clock);
        const onStep = (step: string) => line.update(`${step} ...`);
        const examination = { ...examine(), nowMs: io.clock(), onStep };
        const facts = await gatherFacts(examination).finally(() => line.clear());
        const findings = judge(facts).map(clean);
        if (json === true) await writeJson(io.stdout, { items: findings, next: null });
        else await writeOut(io.stdout, describe(findings, io));
        if (findings.some(({ level }) => level === "problem")) io.setExitCode(1);
      }),
    );
}

/** Errors of the platform and of channels may quote texts of others. */
function clean({ text, next, ...finding }: Finding): Finding {
  return {
    ...finding,
    text: toLine(text, MAX_CHARS),
    next: next === null ? null : asCalled(toLine(next, MAX_CHARS)),
  };
}

function describe(findings: readonly Finding[], io: StoreIo): string {
  const paint = pickPaint(io);
  const width = Math.max(NARROWEST, Math.min(WIDEST, io.stdout.columns ?? 80));
  const indent = " ".repeat(MARK_COLUMNS + CHECK_COLUMNS);
  const lines = findings.map(({ check, level, text, next }) => {
    const { mark, style } = MARKS[level];
    const [first = "", ...rest] = wrapText(text, width - indent.length);
    const steps = next === null ? [] : wrapText(`-> ${next}`, width - indent.length);
    const head = `${paint(style, mark)}${" ".repeat(MARK_COLUMNS - mark.length)}${check.padEnd(CHECK_COLUMNS)}${first}`;
    return [head, ...rest.map((line) => indent + line), ...steps.map((line) => indent + paint("bold", line))]
      .map((line) => `${line}\n`)
      .join("");
  });
  const count = (level: FindingLevel) => findings.filter((finding) => finding.level === level).length;
  const totals = (["problem", "warning", "note"] as const).flatMap((level) =>
    count(level) === 0 ? [] : [many(count(level), level)],
  );
  return `${lines.join("")}\n${totals.length === 0 ? "Nothing is wrong." : `${totals.join(", ")}.`}\n`;
}
