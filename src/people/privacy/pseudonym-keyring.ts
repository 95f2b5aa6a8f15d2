import { randomBytes } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { readKeyId, registerKeyId } from "#db/people/pseudonymise.ts";
import { toError } from "#lib/errors.ts";
import { ownCommand, startHint } from "#lib/process.ts";
import { createSecret } from "#lib/secret.ts";
import { PseudonymKeyError } from "#people/rules/erasure-guard.ts";
import { createPseudonymKey, type PseudonymKey } from "#people/rules/pseudonym.ts";

const FILE = "pseudonym.key";
const KEY_BYTES = 32;

type KeyConfig = Pick<Config, "pseudonymKey" | "keyDir">;

export interface PseudonymKeyring {
  /**
   * Returns the key in use: the configured one, or the one of the key folder, which the first use creates.
   * @throws {PseudonymKeyError} if this process lacks the key that the database was created with
   */
  readonly open: () => Promise<PseudonymKey>;
  /** Returns what is wrong with the key; null if this process has the key and a later start will find it. */
  readonly findProblem: () => Promise<string | null>;
}

interface KeyringOptions {
  /** False for a command: only the service creates a key, in its own key folder. */
  readonly mayCreate?: boolean;
  /** Called with the file of a key that was just created. */
  readonly onCreated?: (file: string) => void;
}

/** Asks the database each time for the key in use, because another command may have replaced it. */
export function createPseudonymKeyring(
  config: KeyConfig,
  { db }: Pick<Database, "db">,
  { mayCreate = true, onCreated = () => undefined }: KeyringOptions = {},
): PseudonymKeyring {
  let cached: PseudonymKey | null = null;
  const open = async () => {
    const inUse = await readKeyId(db);
    if (cached !== null && cached.id === inUse) return cached;
    const found = readKey(config, inUse);
    if (found === null && inUse === null && !mayCreate)
      throw new Error(`no pseudonym key is in use yet: ${startHint()} first`);
    const key = found ?? (inUse === null ? createKeyFile(config.keyDir) : null);
    const registered = key === null ? inUse : await registerKeyId(db, key.id);
    if (key === null || registered !== key.id) throw keyError(config, explain(config, key, registered));
    cached = key;
    if (found === null) onCreated(fileIn(config.keyDir));
    return key;
  };
  return {
    open,
    async findProblem() {
      try {
        const { id } = await open();
        // The process continues with the key in memory. Its next start would not find the key.
        const found = readKey(config, id);
        return found?.id === id ? null : `${explain(config, found, id)} This process still has the key.`;
      } catch (thrown) {
        if (thrown instanceof PseudonymKeyError) return thrown.problem;
        throw thrown;
      }
    },
  };
}

export interface NextKey {
  readonly key: PseudonymKey;
  /** Moves a new key to the file that the service reads. Call this after the database has recorded the key. */
  readonly adopt: () => void;
}

/**
 * Returns the key to put in use: the configured one, or a new one in a file next to the present one. A crash between
 * the database's commit and `adopt` is harmless: the next reader finds the new file and adopts it.
 */
export function prepareKey({ pseudonymKey, keyDir }: KeyConfig): NextKey {
  if (pseudonymKey !== null) return { key: createPseudonymKey(pseudonymKey), adopt: () => undefined };
  const temporary = writeTemporary(keyDir);
  renameSync(temporary, nextFileIn(keyDir));
  return {
    key: readKeyFile(nextFileIn(keyDir)),
    adopt: () => adoptNext(keyDir),
  };
}

/** Returns the key that replaces a lost one: the key that this process has, or a new one. */
export function prepareSubstitute(config: KeyConfig): NextKey {
  const own = readKey(config, null);
  return own === null ? prepareKey(config) : { key: own, adopt: () => undefined };
}

function explain(
  { pseudonymKey, keyDir }: KeyConfig,
  key: PseudonymKey | null,
  inUse: string | null,
): string {
  const place = pseudonymKey === null ? fileIn(keyDir) : "LONGWATCH_PSEUDONYM_KEY";
  const found = key === null ? `${place} does not exist.` : `${place} holds key ${key.id}.`;
  return `The pseudonym key ${inUse} is missing: this database was made with it, and ${found}`;
}

function keyError(
  { pseudonymKey, keyDir }: KeyConfig,
  problem: string,
  options: ErrorOptions = {},
): PseudonymKeyError {
  const place =
    pseudonymKey === null
      ? `put the file ${fileIn(keyDir)} back, or set LONGWATCH_PSEUDONYM_KEY to the key`
      : "set LONGWATCH_PSEUDONYM_KEY to the key";
  const remedies = [
    `If a backup or another process has the key: ${place}.`,
    `If the key is lost for good: ${ownCommand("privacy rotate-key --lost --yes")} (docs/privacy.md).`,
  ];
  return new PseudonymKeyError(problem, remedies, options);
}

function fileIn(keyDir: string): string {
  return path.join(keyDir, FILE);
}

function nextFileIn(keyDir: string): string {
  return `${fileIn(keyDir)}.next`;
}

/**
 * Returns the configured key, or the key of the key folder; null if there is none.
 * @throws {PseudonymKeyError} if the file exists but cannot be read
 */
function readKey(config: KeyConfig, inUse: string | null): PseudonymKey | null {
  const { pseudonymKey, keyDir } = config;
  const readFile = (file: string) => {
    try {
      return readKeyFile(file);
    } catch (thrown) {
      const problem = `The pseudonym key cannot be read: ${toError(thrown).message}.`;
      throw keyError(config, problem, { cause: thrown });
    }
  };
  if (pseudonymKey !== null) return createPseudonymKey(pseudonymKey);
  const key = existsSync(fileIn(keyDir)) ? readFile(fileIn(keyDir)) : null;
  if (inUse === null || key?.id === inUse || !existsSync(nextFileIn(keyDir))) return key;
  const next = readFile(nextFileIn(keyDir));
  if (next.id !== inUse) return key;
  adoptNext(keyDir);
  return next;
}

/** Moves the new key to the file that the service reads, unless another process has just done so. */
function adoptNext(keyDir: string): void {
  try {
    renameSync(nextFileIn(keyDir), fileIn(keyDir));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "ENOENT") throw thrown;
  }
}

function readKeyFile(file: string): PseudonymKey {
  return createPseudonymKey(createSecret(readFileSync(file, "utf8").trim()));
}

/** Creates the key file atomically, so that only one process creates it. Only its user may read it. */
function createKeyFile(keyDir: string): PseudonymKey {
  const temporary = writeTemporary(keyDir);
  try {
    linkSync(temporary, fileIn(keyDir));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  } finally {
    rmSync(temporary, { force: true });
  }
  return readKeyFile(fileIn(keyDir));
}

function writeTemporary(keyDir: string): string {
  mkdirSync(keyDir, { recursive: true });
  const temporary = `${fileIn(keyDir)}.${process.pid}.${randomBytes(4).toString("hex")}`;
  writeFileSync(temporary, `${randomBytes(KEY_BYTES).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  return temporary;
}
