import { z } from "zod";
import { ContainerTemplateRequest } from "./container-template.ts";
import { Int32 } from "./int32.ts";

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
