/** The bodies of the operations on applications: containers, their endpoints, probes and volumes. */
import { z } from "zod";
import { Int32, Int32Id, listOf, Text } from "./values.ts";

const Port = z.int().min(1).max(65_535);
const Seconds = z.int().min(1).max(3_600).nullish();
const Threshold = z.int().min(1).max(1_000).nullish();

/** One probe; unset numbers mean 10 s delay, 10 s period, 7 s timeout, 3 failures, 1 success. */
const ContainerProbe = z.strictObject({
  initialDelaySeconds: Seconds,
  periodSeconds: Seconds,
  timeoutSeconds: Seconds,
  failureThreshold: Threshold,
  successThreshold: Threshold,
  httpGet: z
    .strictObject({
      request: z.strictObject({ path: z.string().optional(), portNumber: Port.optional() }).nullish(),
      /** A status name in camelCase, such as `ok` or `noContent`. */
      response: z
        .strictObject({
          expectedStatusCode: z
            .string()
            .regex(/^[a-z][a-zA-Z]+$/)
            .optional(),
        })
        .nullish(),
    })
    .nullish(),
  tcpSocket: z.strictObject({ request: z.strictObject({ portNumber: Port.optional() }).nullish() }).nullish(),
  grpc: z
    .strictObject({
      request: z.strictObject({ portNumber: Port.optional(), serviceName: z.string().nullish() }).nullish(),
    })
    .nullish(),
});

const ContainerProbes = z.strictObject({
  startup: ContainerProbe.nullish(),
  readiness: ContainerProbe.nullish(),
  liveness: ContainerProbe.nullish(),
});
type ContainerProbes = z.infer<typeof ContainerProbes>;

const PortMapping = z.strictObject({
  containerPort: Port,
  exposedPort: Port.nullish(),
  protocols: z.array(z.enum(["tcp", "udp", "sctp"])).optional(),
});

/** One endpoint of a container. A CDN endpoint takes exactly one port mapping. */
const EndpointRequest = z.strictObject({
  displayName: z.string().min(1).max(50),
  cdn: z
    .strictObject({
      isSslEnabled: z.boolean().optional(),
      stickySessions: z
        .strictObject({
          enabled: z.boolean().optional(),
          sessionHeaders: z.array(z.string()).min(1).max(3),
          cookieName: z.string().optional(),
        })
        .nullish(),
      pullZoneId: Int32Id.nullish(),
      portMappings: z.array(PortMapping).length(1).optional(),
    })
    .nullish(),
  anycast: z.strictObject({ type: z.literal("iPv4"), portMappings: z.array(PortMapping).min(1) }).nullish(),
  internalIp: z.strictObject({ portMappings: z.array(PortMapping).min(1) }).nullish(),
});
type EndpointRequest = z.infer<typeof EndpointRequest>;

const Address = z.looseObject({ address: Text, region: Text });

const Endpoint = z.looseObject({
  id: Text,
  displayName: Text,
  publicHost: Text,
  isSslEnabled: z.boolean().nullish(),
  pullZoneId: Text,
  portMappings: listOf(
    z.looseObject({
      containerPort: z.int().nullish(),
      exposedPort: z.int().nullish(),
      protocols: listOf(z.string()),
    }),
  ),
  stickySessions: z
    .looseObject({ enabled: z.boolean().nullish(), sessionHeaders: listOf(z.string()), cookieName: Text })
    .nullish(),
  internalIpAddresses: listOf(Address),
  publicIpAddresses: listOf(Address),
});
type Endpoint = z.infer<typeof Endpoint>;

const ImageName = z.string().regex(/^[a-zA-Z0-9]+(?:[./_-]{1,2}[a-zA-Z0-9]+)*$/);
const ImageTag = z.string().regex(/^[a-zA-Z0-9]+(?:[._-]{1,2}[a-zA-Z0-9]+)*$/);
const MountPath = z
  .string()
  .regex(/^\/[a-zA-Z0-9._-]+(?:\/[a-zA-Z0-9._-]+)*\/?$/, "must be an absolute path below /")
  .refine((path) => !path.includes(".."), "must not contain ..");

const VolumeMountRequest = z.strictObject({ name: z.string().min(1).max(50), mountPath: MountPath });

/** The request to add a container; platform API spec 2.10 with the ranges of the published description. */
export const ContainerTemplateRequest = z.strictObject({
  name: z.string().min(1).max(50),
  image: z.string().nullish(),
  imageName: ImageName,
  imageNamespace: ImageName,
  imageTag: ImageTag,
  imageDigest: z
    .string()
    .regex(/^(?:sha256:[a-z0-9]{64})?$/)
    .nullish(),
  imageRegistryId: z.string().min(1),
  imagePullPolicy: z.enum(["always", "ifNotPresent"]).optional(),
  entryPoint: z
    .strictObject({
      command: z.string().nullish(),
      commandArray: z.array(z.string()).nullish(),
      arguments: z.string().nullish(),
      argumentsArray: z.array(z.string()).nullish(),
      workingDirectory: z.string().nullish(),
    })
    .nullish(),
  probes: ContainerProbes.nullish(),
  environmentVariables: z
    .array(z.strictObject({ name: z.string().min(1), value: z.string().optional() }))
    .optional(),
  endpoints: z.array(EndpointRequest).optional(),
  volumeMounts: z.array(VolumeMountRequest).optional(),
});
export type ContainerTemplateRequest = z.infer<typeof ContainerTemplateRequest>;

/** The container as the platform stores it. Unused probes are null, unset texts are `""`. */
export const ContainerTemplateResponse = z.looseObject({
  id: z.string(),
  name: Text,
  packageId: Text,
  image: Text,
  imageName: Text,
  imageNamespace: Text,
  imageTag: Text,
  imageRegistryId: Text,
  imageDigest: Text,
  entryPoint: z.record(z.string(), z.unknown()).nullish(),
  probes: z.record(z.string(), z.unknown()).nullish(),
  environmentVariables: listOf(z.looseObject({ name: Text, value: Text })),
  endpoints: listOf(Endpoint),
  volumeMounts: listOf(z.looseObject({ name: Text, mountPath: Text })),
});
export type ContainerTemplateResponse = z.infer<typeof ContainerTemplateResponse>;

const Instances = z.int().min(1).max(1_000);

/**
 * The whole configuration of an application; platform API spec 2.11. It replaces everything: omitted members are
 * reset. A container template with `id` updates that container, without `id` it adds a container. Volume sizes are
 * whole GB.
 */
export const ApplicationUpdateRequest = z.strictObject({
  name: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9\s-]+$/, "may hold letters, digits, blanks and dashes"),
  runtimeType: z.enum(["shared", "reserved"]).optional(),
  autoScaling: z.strictObject({ min: Instances, max: Instances }),
  regionSettings: z.strictObject({
    allowedRegionIds: z.array(z.string()).nullish(),
    requiredRegionIds: z.array(z.string()).nullish(),
    maxAllowedRegions: Int32.nullish(),
    nodeSelectors: z.record(z.string(), z.string()).nullish(),
  }),
  terminationGracePeriodSeconds: z.int().min(1).max(300).optional(),
  repositorySettings: z
    .strictObject({
      templateRepository: z.string().nullish(),
      repositoryName: z.string().nullish(),
      owner: z.string().nullish(),
    })
    .nullish(),
  containerTemplates: z
    .array(ContainerTemplateRequest.extend({ id: z.string().nullish() }))
    .min(1)
    .optional(),
  volumes: z
    .array(z.strictObject({ name: z.string().min(1).max(50), size: z.int().min(1).max(100) }))
    .optional(),
});
export type ApplicationUpdateRequest = z.infer<typeof ApplicationUpdateRequest>;

export const ApplicationUpdateResponse = z.looseObject({ id: z.string() });
export type ApplicationUpdateResponse = z.infer<typeof ApplicationUpdateResponse>;

/** The ids of the volume instances that were deleted; platform API spec 2.12. */
export const VolumeInstancesDeletion = z.looseObject({
  ids: listOf(z.string()),
});
export type VolumeInstancesDeletion = z.infer<typeof VolumeInstancesDeletion>;
