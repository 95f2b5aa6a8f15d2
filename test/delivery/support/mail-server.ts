import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

interface SeenMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly user: string | null;
  readonly isSecure: boolean;
  readonly raw: string;
}

/** A real SMTP server that keeps what it is given; by default without TLS and login. */
export async function startMailServer(options: SMTPServerOptions = {}) {
  const mails: SeenMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    closeTimeout: 50,
    onData(stream, { envelope, user, secure }, callback) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        mails.push({
          from: envelope.mailFrom === false ? "" : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          user: user ?? null,
          isSecure: secure,
          raw: Buffer.concat(chunks).toString(),
        });
        callback();
      });
    },
    ...options,
  });
  // A peer that breaks off is what some tests are about.
  server.on("error", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    mails,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** A header of a raw mail, unfolded; undefined where it has none. */
export function headerOf(raw: string, name: string): string | undefined {
  const [head = ""] = raw.split("\r\n\r\n", 1);
  const lines = head.replaceAll(/\r\n[ \t]+/g, " ").split("\r\n");
  const prefix = `${name.toLowerCase()}:`;
  return lines
    .find((line) => line.toLowerCase().startsWith(prefix))
    ?.slice(prefix.length)
    .trim();
}
