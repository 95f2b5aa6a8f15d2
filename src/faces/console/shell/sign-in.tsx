import { Button, Group, PasswordInput, Stack } from "@mantine/core";
import { type SubmitEvent, useEffect, useRef, useState } from "react";
import { toProblem } from "../api/client.ts";
import { useIssuer, useSignIn, useStartAtIssuer } from "../api/session.ts";
import { CopyButton } from "../components/buttons.tsx";
import { Logo } from "../style/icons.tsx";
import classes from "./sign-in.module.css";

const PATH = "/sign-in";

/** Takes a secret out of the address, so that neither history nor a screenshot shows it. */
function takeSecret(): { readonly token: string } | { readonly answer: string } | null {
  const { hash, pathname, search } = globalThis.location;
  const isAnswer = new URLSearchParams(search).has("state");
  if (pathname !== PATH || (hash.length < 2 && !isAnswer)) return null;
  history.replaceState(null, "", isAnswer ? pathname : `${pathname}${search}`);
  return isAnswer ? { answer: search.slice(1) } : { token: hash.slice(1) };
}

/** Signs in with the token of the terminal's link or the answer of the issuer, else at the issuer or with a pasted key. */
export function SignIn() {
  const { mutate, isPending, error, variables } = useSignIn();
  const issuer = useIssuer();
  const start = useStartAtIssuer();
  const [key, setKey] = useState("");
  const isTried = useRef(false);
  useEffect(() => {
    if (isTried.current) return;
    isTried.current = true;
    const secret = takeSecret();
    if (secret !== null) mutate(secret);
  }, [mutate]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (key.trim() !== "") mutate({ key: key.trim() });
  };
  const isKey = variables === undefined || "key" in variables;
  const isLink = variables !== undefined && "token" in variables;
  const shown = start.error ?? (isKey ? null : error);
  return (
    <main className={classes["page"]}>
      <Stack component="form" gap={16} className={`lw-panel ${classes["card"]}`} onSubmit={submit}>
        <Logo />
        <h1>Sign in</h1>
        {issuer === null ? null : (
          <Button size="sm" loading={start.isPending} onClick={() => start.mutate()}>
            Sign in with {issuer}
          </Button>
        )}
        {shown === null ? null : (
          <p className="lw-warn" role="alert">
            {word(shown)}
            {isLink && start.error === null
              ? " A link works once and for ten minutes. Paste a key, or make a new link."
              : ""}
          </p>
        )}
        {!isKey && isPending ? <p role="status">Signing in ...</p> : null}
        {issuer === null ? null : <p>Or with a key:</p>}
        <PasswordInput
          label="API key"
          description="A key of this service. It begins with lw_."
          placeholder="lw_..."
          autoComplete="current-password"
          autoFocus
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          error={error === null || !isKey ? null : word(error)}
        />
        <Button
          type="submit"
          size="sm"
          variant={issuer === null ? "filled" : "default"}
          loading={isPending}
          disabled={key.trim() === ""}
        >
          Sign in
        </Button>
        <div className={`lw-note ${classes["hint"]}`}>
          A link that signs in once:
          <Command text="npm run -s longwatch -- sign-in" />A new key:
          <Command text="npm run -s longwatch -- keys create --name me --role operator" />
        </div>
      </Stack>
    </main>
  );
}

/** A command in one line, so that it can be read and copied as it has to be typed. */
function Command({ text }: { readonly text: string }) {
  return (
    <Group gap={8} mb={8} mt={2} wrap="nowrap">
      <pre className="lw-code" tabIndex={0} aria-label="Command">
        {text}
      </pre>
      <CopyButton text={() => text}>Copy</CopyButton>
    </Group>
  );
}

function word(error: Error): string {
  const { status, detail, title } = toProblem(error);
  return status === 401
    ? detail || "This key is not valid: it is unknown, revoked or expired."
    : detail || title;
}
