import { saysFullDisk } from "#lib/full-disk.ts";

const MAX_CHARS = 20_000;
const MAX_LINES = 5;
const MAX_LINE_CHARS = 300;
/** Lines about the server itself. Errors of statements are left out, because they may contain addresses and other event data. */
const IS_SERVERS =
  /\s(?:FATAL|PANIC):|\sLOG: {2}(?:could not|.*terminated by signal|.*exited with exit code)/;
/** Routine lines: every client that connects while the server starts or ends causes one. */
const IS_ROUTINE = /FATAL: {2}(?:the database system is|terminating connection)/;

export interface ServerLog {
  add(text: string): void;
  /** Returns the last text that the server wrote. */
  tail(): string;
  /** Returns the last error lines of the server, oldest first, at most five. */
  errors(): string[];
}

/** Keeps the end of what a Postgres server writes to stderr. */
export function createServerLog(): ServerLog {
  let text = "";
  return {
    add(more) {
      text = (text + more).slice(-MAX_CHARS);
    },
    tail: () => text.slice(-2_000),
    errors() {
      const lines = text.split("\n").filter((line) => isWorthKeeping(line));
      return [...new Set(lines)].slice(-MAX_LINES).map((line) => line.slice(0, MAX_LINE_CHARS));
    },
  };
}

function isWorthKeeping(line: string): boolean {
  if (IS_ROUTINE.test(line)) return false;
  return IS_SERVERS.test(line) || (saysFullDisk(line) && /\s(?:ERROR|LOG|WARNING):/.test(line));
}
