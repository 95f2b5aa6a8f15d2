import { Button, Group, PasswordInput, Stack } from "@mantine/core";
import { type SubmitEvent, useEffect, useRef, useState } from "react";
import { toProblem } from "../api/problem.ts";
import { useSignIn } from "../api/session.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { Logo } from "./logo.tsx";
import classes from "./sign-in.module.css";

const PATH = "/sign-in";

/** Takes the token out of the address, so that neither history nor a screenshot shows it. */
function takeToken(): string | null {
  const { hash, pathname, search } = globalThis.location;
  if (pathname !== PATH || hash.length < 2) return null;
  history.replaceState(null, "", `${pathname}${search}`);
  return hash.slice(1);
}

/** Signs in with the token of the terminal's link, else with a pasted key. */
export function SignIn() {
  const { mutate, isPending, error, variables } = useSignIn();
  const [key, setKey] = useState("");
  const isTried = useRef(false);
  useEffect(() => {
    if (isTried.current) return;
    isTried.current = true;
    const token = takeToken();
    if (token !== null) mutate({ token });
  }, [mutate]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (key.trim() !== "") mutate({ key: key.trim() });
  };
  const isLink = variables !== undefined && "token" in variables;
  return (
    <main className={classes["page"]}>
      <Stack component="form" gap={16} className={`lw-panel ${classes["card"]}`} onSubmit={submit}>
        <Logo />
        <h1>Sign in</h1>
        <PasswordInput
          label="API key"
          description="A key of this service. It begins with lw_."
          placeholder="lw_..."
          autoComplete="current-password"
          autoFocus
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          error={error === null || isLink ? null : word(error)}
        />
        {error !== null && isLink ? (
          <p className="lw-warn" role="alert">
            {word(error)} A link works once and for ten minutes. Paste a key, or make a new link.
          </p>
        ) : null}
        {isLink && isPending ? <p role="status">Signing in with the link ...</p> : null}
        <Button type="submit" size="sm" loading={isPending} disabled={key.trim() === ""}>
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
