import { createRandom, hashText, type Random } from "./traffic/random.ts";

interface ApiKey {
  readonly Id: number;
  readonly Key: string;
  readonly Roles: readonly string[];
}

interface VolumeInstance {
  readonly id: string;
  attached: boolean;
}

export interface Volume {
  readonly id: string;
  readonly name: string;
  /** Whole gigabytes. */
  size: number;
  instances: VolumeInstance[];
}

export type ContainerTemplate = Record<string, unknown> & { id: string; name: string };

export interface App {
  readonly id: string;
  name: string;
  settings: Record<string, unknown>;
  containers: ContainerTemplate[];
  volumes: Volume[];
}

interface PullZone {
  readonly id: number;
  readonly hostnames: { readonly name: string; keyType: "ecdsa" | "rsa" }[];
}

export interface Resources {
  readonly apiKeys: readonly ApiKey[];
  readonly apps: Map<string, App>;
  readonly pullZones: Map<number, PullZone>;
  /** Names that are not available, lower case. */
  readonly takenDnsNames: readonly string[];
  /** Returns an id of letters and digits, the next of this seed's sequence. */
  newId(characters: number): string;
  newUuid(): string;
}

const ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
const KEYS = 12;

function uuidOf(random: Random): string {
  const hex = Array.from({ length: 4 }, () => random.next().toString(16).padStart(8, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function firstContainer(id: string): ContainerTemplate {
  return {
    id,
    name: "web",
    packageId: "5a0f1c9e-7b1d-4d53-9b0e-0d7c2f4b8a11",
    image: "registry.example.test/shop/web:1.4.2",
    imageName: "web",
    imageNamespace: "shop",
    imageTag: "1.4.2",
    imageRegistryId: "1042",
    imageDigest: "",
    imagePullPolicy: "ifNotPresent",
    entryPoint: { command: "", commandArray: [], arguments: "", argumentsArray: [], workingDirectory: "" },
    probes: { startup: null, readiness: null, liveness: null },
    environmentVariables: [{ name: "PORT", value: "8080" }],
    endpoints: [],
    volumeMounts: [{ name: "data", mountPath: "/var/lib/shop" }],
  };
}

/** Returns an application with a volume with attached instances and one whose instances are all detached. */
function createApp(name: string, newId: (characters: number) => string): App {
  const id = newId(15);
  const volume = (volumeName: string, attached: readonly boolean[]): Volume => ({
    id: `${volumeName}-${newId(6)}`,
    name: volumeName,
    size: 10,
    instances: attached.map((isAttached) => ({ id: `${volumeName}-${newId(8)}`, attached: isAttached })),
  });
  return {
    id,
    name,
    settings: {
      runtimeType: "shared",
      autoScaling: { min: 1, max: 3 },
      regionSettings: { allowedRegionIds: ["DE"] },
    },
    containers: [firstContainer(`${id}-${newId(4)}`)],
    volumes: [volume("data", [true, false]), volume("scratch", [false, false, false])],
  };
}

/** Returns the account's data besides events: a function of seed and zones until a request changes it. */
export function createResources(seed: string, accessKey: string, zoneIds: readonly number[]): Resources {
  const random = createRandom();
  random.reseed(hashText(seed), 0x726573, 0, 1);
  const newId = (characters: number) =>
    Array.from({ length: characters }, () => ALPHABET[random.below(ALPHABET.length)]).join("");
  const newUuid = () => uuidOf(random);
  const others = Array.from({ length: KEYS - 1 }, (_, index) => ({
    Id: 2_001 + index,
    Key: newUuid() + newUuid(),
    Roles: index % 3 === 0 ? ["User", "UserApi"] : ["UserApi"],
  }));
  const apps = ["shop", "reports"].map((name) => createApp(name, newId));
  const pullZones = zoneIds.map((zoneId): PullZone => {
    const names = ["www", "shop", "api"].map((host) => `${host}.zone${zoneId}.example.test`);
    return { id: 5_000 + zoneId, hostnames: names.map((name) => ({ name, keyType: "rsa" })) };
  });
  return {
    apiKeys: [{ Id: 2_000, Key: accessKey, Roles: ["User", "UserApi"] }, ...others],
    apps: new Map(apps.map((app) => [app.id, app])),
    pullZones: new Map(pullZones.map((zone) => [zone.id, zone])),
    takenDnsNames: [
      "example.com",
      "example.net",
      "example.org",
      "example.test",
      ...zoneIds.map((id) => `zone${id}.example.test`),
    ],
    newId,
    newUuid,
  };
}
