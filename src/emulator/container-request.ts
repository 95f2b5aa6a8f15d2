/** Requests of containers, and the container that is stored for one. */
import { z } from "zod";
import type { App, ContainerTemplate, Resources } from "./resources.ts";

/** Returns the schema of an enum. Values are accepted in any case and converted to camelCase. */
function word<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.preprocess(
    (value) =>
      typeof value === "string"
        ? (words.find((known) => known.toLowerCase() === value.toLowerCase()) ?? value)
        : value,
    z.enum(words),
  );
}

/** Returns the schema of an optional part, for which the platform accepts `null`. */
function optional<T extends z.ZodType>(schema: T) {
  return schema.nullish();
}

const port = z.int().min(1).max(65_535);
const name = z.string().min(1).max(50);
const SEGMENT = "[a-zA-Z0-9]+(?:[./_-]{1,2}[a-zA-Z0-9]+)*";

const Probe = z.looseObject({
  initialDelaySeconds: optional(z.int().min(1).max(3_600)),
  periodSeconds: optional(z.int().min(1).max(3_600)),
  timeoutSeconds: optional(z.int().min(1).max(3_600)),
  failureThreshold: optional(z.int().min(1).max(1_000)),
  successThreshold: optional(z.int().min(1).max(1_000)),
  httpGet: optional(
    z.looseObject({
      request: optional(z.looseObject({ path: optional(z.string()), portNumber: optional(port) })),
      response: optional(z.looseObject({ expectedStatusCode: optional(z.string()) })),
    }),
  ),
  tcpSocket: optional(z.looseObject({ request: optional(z.looseObject({ portNumber: optional(port) })) })),
  grpc: optional(
    z.looseObject({
      request: optional(z.looseObject({ portNumber: optional(port), serviceName: optional(z.string()) })),
    }),
  ),
});

const PortMapping = z.looseObject({
  containerPort: port,
  exposedPort: optional(port),
  protocols: optional(z.array(word(["tcp", "udp", "sctp"]))),
});

const Endpoint = z.looseObject({
  displayName: name,
  cdn: optional(
    z.looseObject({
      isSslEnabled: optional(z.boolean()),
      pullZoneId: optional(z.int()),
      portMappings: optional(z.array(PortMapping).length(1)),
      stickySessions: optional(
        z.looseObject({
          enabled: optional(z.boolean()),
          sessionHeaders: z.array(z.string()).min(1).max(3),
          cookieName: optional(z.string()),
        }),
      ),
    }),
  ),
  anycast: optional(z.looseObject({ type: word(["iPv4"]), portMappings: z.array(PortMapping).min(1) })),
});

/** Body of the add operation (platform API spec 2.10); bounds as in the official schema. */
export const ContainerRequest = z.looseObject({
  id: optional(z.string()),
  name,
  image: optional(z.string()),
  imageName: z.string().regex(new RegExp(`^${SEGMENT}$`), "must be letters and digits, joined by . / _ or -"),
  imageNamespace: z
    .string()
    .regex(new RegExp(`^${SEGMENT}$`), "must be letters and digits, joined by . / _ or -"),
  imageTag: z
    .string()
    .regex(/^[a-zA-Z0-9]+(?:[._-]{1,2}[a-zA-Z0-9]+)*$/, "must be letters and digits, joined by . _ or -"),
  imageDigest: optional(
    z.string().regex(/^(sha256:[a-z0-9]{64})?$/, "must be sha256: and 64 letters or digits"),
  ),
  imageRegistryId: z.string().min(1),
  imagePullPolicy: optional(word(["always", "ifNotPresent"])),
  entryPoint: optional(
    z.looseObject({
      command: optional(z.string()),
      commandArray: optional(z.array(z.string())),
      arguments: optional(z.string()),
      argumentsArray: optional(z.array(z.string())),
      workingDirectory: optional(z.string()),
    }),
  ),
  probes: optional(
    z.looseObject({ startup: optional(Probe), readiness: optional(Probe), liveness: optional(Probe) }),
  ),
  environmentVariables: optional(
    z.array(z.looseObject({ name: z.string().min(1), value: optional(z.string()) })),
  ),
  endpoints: optional(z.array(Endpoint)),
  volumeMounts: optional(
    z.array(
      z.looseObject({
        name,
        mountPath: z
          .string()
          .regex(/^\/(?!.*\/\/)(?!.*\.\.)(?!.*\s)([a-zA-Z0-9._-]+\/?)+$/, "must be an absolute path below /"),
      }),
    ),
  ),
});
export type ContainerRequest = z.infer<typeof ContainerRequest>;
type EndpointRequest = z.infer<typeof Endpoint>;

/**
 * Body of the full replacement (platform API spec 2.11). `runtimeType` is optional, because the spec does not contain
 * it.
 */
export const ApplicationRequest = z.looseObject({
  name: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[A-Za-z0-9-\s]+$/, "must be letters, digits, blanks or dashes"),
  runtimeType: optional(word(["shared", "reserved"])),
  terminationGracePeriodSeconds: optional(z.int().min(1).max(300)),
  repositorySettings: optional(
    z.looseObject({
      templateRepository: optional(z.string()),
      repositoryName: optional(z.string()),
      owner: optional(z.string()),
    }),
  ),
  autoScaling: z.looseObject({ min: z.int().min(1).max(1_000), max: z.int().min(1).max(1_000) }),
  regionSettings: z.looseObject({
    allowedRegionIds: optional(z.array(z.string())),
    requiredRegionIds: optional(z.array(z.string())),
    maxAllowedRegions: optional(z.int()),
    nodeSelectors: optional(z.record(z.string(), z.string())),
  }),
  containerTemplates: optional(z.array(ContainerRequest).min(1)),
  volumes: optional(z.array(z.looseObject({ name, size: z.int().min(1).max(100) }))),
});
export type ApplicationRequest = z.infer<typeof ApplicationRequest>;

const NO_ENTRY_POINT = {
  command: "",
  commandArray: [],
  arguments: "",
  argumentsArray: [],
  workingDirectory: "",
};
const NO_PROBES = { startup: null, readiness: null, liveness: null };

function toPortMappings(
  mappings: readonly {
    containerPort: number;
    exposedPort?: number | null | undefined;
    protocols?: readonly string[] | null | undefined;
  }[],
) {
  return mappings.map(({ containerPort, exposedPort, protocols }) => ({
    containerPort,
    exposedPort: exposedPort ?? containerPort,
    protocols: protocols ?? ["tcp"],
  }));
}

function toEndpoint(endpoint: EndpointRequest, app: App, resources: Resources) {
  const { displayName, cdn, anycast } = endpoint;
  const host = `${displayName.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-")}-${resources.newId(5).toLowerCase()}`;
  const sticky = cdn?.stickySessions;
  return {
    id: `${app.id.slice(0, 8)}-${displayName}-${resources.newId(6)}`,
    displayName,
    publicHost: `${host}.edge.example.test`,
    type: anycast ? "anycast" : "cdn",
    isSslEnabled: cdn?.isSslEnabled ?? false,
    pullZoneId: cdn?.pullZoneId ? String(cdn.pullZoneId) : "",
    portMappings: toPortMappings(anycast?.portMappings ?? cdn?.portMappings ?? []),
    stickySessions: {
      enabled: sticky?.enabled ?? false,
      sessionHeaders: sticky?.sessionHeaders ?? [],
      cookieName: sticky?.cookieName ?? "",
    },
    internalIpAddresses: [],
    publicIpAddresses: [],
  };
}

/** Returns the template as the platform returns it: defaults filled in, missing strings empty, unused probes null. */
export function toContainerTemplate(
  request: ContainerRequest,
  app: App,
  resources: Resources,
): ContainerTemplate {
  const { imageNamespace, imageName, imageTag } = request;
  return {
    id: request.id ?? `${app.id}-${resources.newId(4)}`,
    name: request.name,
    packageId: resources.newUuid(),
    image: request.image ?? `${imageNamespace}/${imageName}:${imageTag}`,
    imageName,
    imageNamespace,
    imageTag,
    imageRegistryId: request.imageRegistryId,
    imageDigest: request.imageDigest ?? "",
    imagePullPolicy: request.imagePullPolicy ?? "ifNotPresent",
    entryPoint: { ...NO_ENTRY_POINT, ...request.entryPoint },
    probes: { ...NO_PROBES, ...request.probes },
    environmentVariables: request.environmentVariables ?? [],
    endpoints: (request.endpoints ?? []).map((endpoint) => toEndpoint(endpoint, app, resources)),
    volumeMounts: request.volumeMounts ?? [],
  };
}
