import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Database, Queryable } from "../db/client.ts";
import { readKeyId, registerKeyId, replaceKeyId } from "../db/queries/pseudonym-keys.ts";
import type { Config } from "./config.ts";
import { PseudonymKeyError } from "./privacy/erasure-guard.ts";
import { createPseudonymKey, type PseudonymKey } from "./privacy/pseudonym-key.ts";
import { createSecret } from "./secret.ts";

const FILE = "pseudonym.key";
const KEY_BYTES = 32;

type KeyConfig = Pick<Config, "pseudonymKey" | "dataDir">;

export interface PseudonymKeyring {
  /**
   * The key in use: the configured one, or that of the data folder, made there at the first use.
   * @throws {PseudonymKeyError} where the database knows of another.
   */
  readonly open: () => Promise<PseudonymKey>;
}

/** Asks the database each time which key is in use: another command may have put in a new one. */
export function createPseudonymKeyring(config: KeyConfig, { db }: Pick<Database, "db">): PseudonymKeyring {
  let held: PseudonymKey | null = null;
  return {
    async open() {
      const inUse = await readKeyId(db);
      if (held !== null && held.id === inUse) return held;
      const key = readKey(config) ?? (inUse === null ? createKeyFile(config.dataDir) : null);
      const registered = key === null ? inUse : await registerKeyId(db, key.id);
      if (key === null || registered !== key.id)
        throw new PseudonymKeyError(explain(config, key, registered));
      held = key;
      return key;
    },
  };
}

/** Puts the configured key in use, or, where none is configured, a new one in the data folder. */
export async function rotateKey(config: KeyConfig, tx: Queryable, nowMs: number): Promise<PseudonymKey> {
  if (config.pseudonymKey === null) replaceKeyFile(config.dataDir);
  const key = readKey(config) ?? createKeyFile(config.dataDir);
  await replaceKeyId(tx, key.id, nowMs);
  return key;
}

function explain(config: KeyConfig, key: PseudonymKey | null, inUse: string | null): string {
  const here =
    key === null
      ? `there is none in ${fileIn(config.dataDir)}`
      : `${config.pseudonymKey === null ? fileIn(config.dataDir) : "LONGWATCH_PSEUDONYM_KEY"} holds ${key.id}`;
  return `the database's pseudonyms are made with key ${inUse}, and ${here}: give every process the same LONGWATCH_PSEUDONYM_KEY, or begin anew with: longwatch privacy rotate-key`;
}

function fileIn(dataDir: string): string {
  return path.join(dataDir, FILE);
}

function readKey({ pseudonymKey, dataDir }: KeyConfig): PseudonymKey | null {
  if (pseudonymKey !== null) return createPseudonymKey(pseudonymKey);
  try {
    return createPseudonymKey(createSecret(readFileSync(fileIn(dataDir), "utf8").trim()));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw thrown;
  }
}

/** Of all processes of the folder one makes it, whole; only its user may read it. */
function createKeyFile(dataDir: string): PseudonymKey {
  const fresh = writeFresh(dataDir);
  try {
    linkSync(fresh, fileIn(dataDir));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  } finally {
    rmSync(fresh, { force: true });
  }
  return createPseudonymKey(createSecret(readFileSync(fileIn(dataDir), "utf8").trim()));
}

function replaceKeyFile(dataDir: string): void {
  renameSync(writeFresh(dataDir), fileIn(dataDir));
}

function writeFresh(dataDir: string): string {
  mkdirSync(dataDir, { recursive: true });
  const fresh = `${fileIn(dataDir)}.${process.pid}.${randomBytes(4).toString("hex")}`;
  writeFileSync(fresh, `${randomBytes(KEY_BYTES).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  return fresh;
}
