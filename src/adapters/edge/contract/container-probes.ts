import { z } from "zod";

export const Port = z.int().min(1).max(65_535);
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

export const ContainerProbes = z.strictObject({
  startup: ContainerProbe.nullish(),
  readiness: ContainerProbe.nullish(),
  liveness: ContainerProbe.nullish(),
});
export type ContainerProbes = z.infer<typeof ContainerProbes>;
