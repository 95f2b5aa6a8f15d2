import { z } from "zod";
import { Endpoint, EndpointRequest } from "./container-endpoint.ts";
import { ContainerProbes } from "./container-probes.ts";
import { listOf } from "./list-of.ts";
import { Text } from "./text.ts";

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
