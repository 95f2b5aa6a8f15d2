/** Gathers the facts that doctor judges. */
import { existsSync, statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import path from "node:path";
import { buildTestMessage } from "#alerts/rules/message/self-message.ts";
import { openPeople } from "#app/open-people.ts";
import { viewService } from "#app/view-service.ts";
import { type Config, zonesOf } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import type { Database } from "#db/client.ts";
import { readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import {
  readRoleRights,
  readServerFacts,
  readServerPlace,
  type ServerPlace,
} from "#db/health/server-facts.ts";
import { readDayBytes, readStoredBytes } from "#db/health/service-status.ts";
import { readAdminKeyLeft } from "#db/people/api-keys.ts";
import { readReplicas } from "#db/postgres/leases.ts";
import { readClockOffset, sharesSessions } from "#db/postgres/server.ts";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { findChannel, openNotifier } from "#delivery/receivers/channels/registry.ts";
import { findTooManyInAll } from "#detection/known-sources.ts";
import type { ChannelFacts, DiskFacts, DoctorFacts, FileFacts, PostgresFacts } from "#health/doctor/facts.ts";
import { listExcess } from "#health/doctor/report-excess-rights.ts";
import { examineService } from "#health/service/attention.ts";
import { assessService } from "#jobs/health/conditions/processes.ts";
import { systemClock } from "#lib/clock.ts";
import { readDiskSpace } from "#lib/disk.ts";
import { messageOf, toError, UsageError } from "#lib/errors.ts";
import { listLoose } from "#lib/files.ts";
import { isAlive, OWN_COMMAND } from "#lib/process.ts";
import { openBucket } from "#store/bucket/bucket.ts";
import { findCluster, POSTGRES_FOLDERS } from "#store/embedded/place-cluster.ts";
import { describePostgresFailure } from "#store/embedded/postgres-error.ts";
import { readRedisInfo } from "#store/queue/redis.ts";
import { withStore } from "../store/open-store.ts";
import { gatherPlatform } from "./gather-platform.ts";

/** Facts from the tables. */
interface Stored {
  readonly postgres: DoctorFacts["postgres"];
  /** The folder of a server that the service did not start, if it is on this machine. */
  readonly databaseFolder: string | null;
  readonly service: DoctorFacts["service"];
  readonly destinations: DoctorFacts["destinations"];
  readonly tooManyKnown: DoctorFacts["tooManyKnown"];
  readonly adminKeyLeftMs: DoctorFacts["adminKeyLeftMs"];
  readonly platform: DoctorFacts["platform"];
  readonly conditions: DoctorFacts["conditions"];
}

interface Examined {
  readonly config: Config;
  readonly configFile: string | null;
  readonly env: NodeJS.ProcessEnv;
  readonly nowMs: number;
  /** Called with what takes time: the platform's answers wait for the request budget. */
  readonly onStep: (step: string) => void;
}

/** Gathers the facts. A part that fails becomes a fact as well; nothing is changed and no message is sent. */
export async function gatherFacts(examined: Examined): Promise<DoctorFacts> {
  const { config, configFile, nowMs } = examined;
  const stored = await gatherStored(examined);
  return {
    version: readVersion(),
    platform: stored.platform,
    conditions: stored.conditions,
    postgres: stored.postgres,
    redis: await gatherRedis(config),
    bucket: await gatherBucket(config),
    disks: listDisks(config, stored.databaseFolder),
    kept: readKept(config),
    channels: tryChannels(config, nowMs),
    consoleUrl: config.consoleUrl,
    issuer: await gatherIssuer(config),
    tooManyKnown: stored.tooManyKnown,
    destinations: stored.destinations,
    configFile,
    files: listFiles(examined),
    loose: gatherLoose(config),
    adminKeyLeftMs: stored.adminKeyLeftMs,
    service: stored.service,
  };
}

async function gatherStored({ config, nowMs, onStep }: Examined): Promise<Stored> {
  const asking = { nowMs, onStep };
  const { knownSources } = config.alerting.detection;
  try {
    return await withStore(config, async (database, databaseUrl) => {
      const place = await readServerPlace(database.db);
      const isShared = config.databaseUrl !== null && (await sharesSessions(databaseUrl.reveal()));
      const postgres = await gatherPostgres(database, config, { nowMs, place, isShared });
      const { hasTables } = postgres;
      const zones = await listZones(config, database, hasTables);
      const asked = { db: database.db, now: nowMs, service: viewService(config) };
      const conditions = hasTables ? await examineService(asked, zones) : [];
      return {
        postgres: { value: postgres },
        databaseFolder: config.databaseUrl === null ? null : findLocalFolder(place),
        service: hasTables ? assessService(await readReplicas(database.db)) : null,
        conditions,
        destinations: hasTables ? await listFaultless(database, config, conditions) : [],
        tooManyKnown: hasTables ? await findTooManyInAll(database.db, knownSources, { nowMs }) : null,
        adminKeyLeftMs: hasTables ? await readAdminKeyLeft(database.db) : undefined,
        platform: await gatherPlatform(config, hasTables ? databaseUrl : null, { ...asking, zones }),
      };
    });
  } catch (thrown) {
    const platform = await gatherPlatform(config, null, { ...asking, zones: config.edge.zones });
    return {
      postgres: { failed: describe(thrown) },
      databaseFolder: null,
      service: null,
      conditions: [],
      destinations: [],
      tooManyKnown: null,
      adminKeyLeftMs: undefined,
      platform,
    };
  }
}

/** A command's environment may lack the zones that the service copies. */
async function listZones(config: Config, { db }: Database, hasTables: boolean): Promise<readonly number[]> {
  const zones = zonesOf(config);
  return zones.length > 0 || !hasTables ? zones : (await listKnownZones(db)).map(({ zoneId }) => zoneId);
}

async function listFaultless(
  { db }: Database,
  { alerting }: Config,
  conditions: DoctorFacts["conditions"],
): Promise<DoctorFacts["destinations"]> {
  const known = await readDestinations(db);
  const faulty = conditions.flatMap(({ condition, subject, found }) =>
    condition.of === "destination" && found !== null ? [subject.key] : [],
  );
  return alerting.destinations
    .filter(({ name }) => !faulty.includes(name))
    .map(({ name }) => ({ destination: name, isUsed: known.get(name)?.acknowledgedAt != null }));
}

async function gatherPostgres(
  { db }: Database,
  config: Config,
  {
    nowMs,
    place,
    isShared,
  }: { readonly nowMs: number; readonly place: ServerPlace; readonly isShared: boolean },
): Promise<PostgresFacts> {
  const server = await readServerFacts(db);
  // The embedded server has one role, which is its owner.
  const excess = config.databaseUrl === null ? [] : listExcess(await readRoleRights(db), config);
  return {
    ...server,
    isShared,
    excess,
    offsetMs: await readClockOffset(db),
    dayBytes: server.hasTables ? await readDayBytes(db, nowMs) : null,
    stored: server.hasTables ? await readStoredBytes(db) : null,
    databaseBytes: place.databaseBytes,
  };
}

async function gatherRedis({ redisUrl, redisCa }: Config): Promise<DoctorFacts["redis"]> {
  if (redisUrl === null) return null;
  try {
    const info = await readRedisInfo({ url: redisUrl, ca: redisCa });
    const read = (name: string) => info.get(name) ?? "";
    return {
      value: {
        version: read("valkey_version") || read("redis_version"),
        policy: read("maxmemory_policy"),
        maxBytes: Number(read("maxmemory")),
        usedBytes: Number(read("used_memory")),
        hasAppendOnlyFile: read("aof_enabled") === "1",
        isWriteFailing: ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"].some(
          (name) => read(name) === "err",
        ),
      },
    };
  } catch (thrown) {
    return { failed: describe(thrown) };
  }
}

/** Reads what the service reads first. Whether the key may write and delete, the service's log says. */
async function gatherBucket({ archive: { bucket } }: Config): Promise<DoctorFacts["bucket"]> {
  if (bucket === null) return null;
  try {
    const opened = openBucket(bucket);
    (await opened.get("archive.json"))?.destroy();
    await opened.list("events");
    return { value: opened.place };
  } catch (thrown) {
    return { failed: messageOf(toError(thrown)) };
  }
}

/** Reads the discovery document. Whether the client's secret is right, only a sign-in shows. */
async function gatherIssuer({ alerting: { signIn }, http }: Config): Promise<DoctorFacts["issuer"]> {
  if (signIn === null) return null;
  try {
    await openPeople({ settings: () => signIn, publicUrl: http.publicUrl ?? "" }).begin();
    return { value: signIn.issuer };
  } catch (thrown) {
    return { failed: describe(thrown) };
  }
}

function listDisks({ databaseUrl, dataDir, archive }: Config, localFolder: string | null): DiskFacts[] {
  const database = databaseUrl === null ? findCluster(dataDir) : localFolder;
  const disks = [
    ...(database === null ? [] : [{ holds: "the database", folder: database, holdsDatabase: true }]),
    ...(archive.isWritten ? [{ holds: "the archive", folder: archive.folder, holdsDatabase: false }] : []),
  ];
  return disks.flatMap((disk) => {
    const space = existsSync(disk.folder) ? readDiskSpace(disk.folder) : null;
    return space === null ? [] : [{ ...disk, freeBytes: space.freeBytes, totalBytes: space.totalBytes }];
  });
}

function readKept({
  archive: { isWritten, hotDays },
  retention: { eventDays },
}: Config): DoctorFacts["kept"] {
  return isWritten && hotDays !== null && hotDays < eventDays
    ? { days: hotDays, setting: "LONGWATCH_HOT_DAYS" }
    : { days: eventDays, setting: "LONGWATCH_RETENTION_DAYS" };
}

/** Opens each channel and renders the test message. Nothing is sent, and nothing is connected to. */
function tryChannels({ alerting, channels: { allowPrivate } }: Config, nowMs: number): ChannelFacts[] {
  const terminal = {
    write: (_text: string, done: () => void) => {
      done();
      return true;
    },
    isTTY: false,
    hasColors: () => false,
    command: OWN_COMMAND,
  };
  const context = { terminal, clock: systemClock, network: { allowPrivateNetworks: allowPrivate } };
  return alerting.channels.map((channel) => {
    const { name, kind } = channel;
    let failed: string | null = null;
    try {
      openNotifier(channel, context);
      findChannel(kind)?.render(buildTestMessage(name, nowMs, "first"), nowMs);
    } catch (thrown) {
      failed = thrown instanceof UsageError ? thrown.mistakes.join("; ") : describe(thrown);
    }
    return { name, kind, failed };
  });
}

/** Files with secrets, and files that decide what the service does. */
function listFiles({ config, configFile, env }: Examined): FileFacts[] {
  const secrets = Object.entries(env).flatMap(([name, file]) =>
    /^(?:LONGWATCH|EDGE)_.*_FILE$|^(?:DATABASE|REDIS)_URL_FILE$/.test(name) &&
    file !== undefined &&
    file !== ""
      ? [{ file, holds: name, isSecret: true }]
      : [],
  );
  const named = [
    ...secrets,
    { file: path.join(config.keyDir, "pseudonym.key"), holds: "the pseudonym key", isSecret: true },
    {
      file: path.join(config.dataDir, "runtime.json"),
      holds: "the address of the running service",
      isSecret: true,
    },
    ...config.alerting.secretFiles.map(({ file, place }) => ({ file, holds: place, isSecret: true })),
    ...(configFile === null ? [] : [{ file: configFile, holds: "the configuration", isSecret: false }]),
  ];
  return named.flatMap(({ file, ...rest }) => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found?.isFile() === true ? [{ file: path.resolve(file), mode: found.mode & 0o777, ...rest }] : [];
  });
}

function gatherLoose({ dataDir }: Config): DoctorFacts["loose"] {
  try {
    return { folder: dataDir, entries: [...listLoose(dataDir, POSTGRES_FOLDERS)] };
  } catch {
    return null;
  }
}

function describe(thrown: unknown): string {
  const error = toError(thrown);
  return (describePostgresFailure(thrown) ?? messageOf(error)).split("\n").join(" ").replace(/\.$/, "");
}

/**
 * Returns the data folder of a server that runs on this machine; null if the server runs elsewhere, or if the role may
 * not know its folder. The folder alone proves nothing: many machines have the same one, and a tunnel ends at this one.
 */
export function findLocalFolder({ dataFolder, address, backendPid }: ServerPlace): string | null {
  const isHere = address === null || isOwnAddress(address);
  return dataFolder !== null && isHere && isAlive(backendPid) && existsSync(dataFolder) ? dataFolder : null;
}

function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((ones) => ones?.some((one) => one.address === address));
}
