/** Starts the console. */
import "./style/mantine.css";
import "./style/style.css";
import {
  Button,
  colorsTuple,
  createTheme,
  Group,
  Loader,
  MantineProvider,
  PasswordInput,
  Stack,
} from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode, type SubmitEvent, Suspense, useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { Link, Redirect, Route, Switch } from "wouter";
import { createQueryClient, toProblem } from "./api/client.ts";
import { takeLeftPage, useIssuer, useSessionQuery, useSignIn, useStartAtIssuer } from "./api/session.ts";
import { CopyButton } from "./components/buttons.tsx";
import { Empty, ProblemBox } from "./components/states.tsx";
import { ROUTES } from "./routes.tsx";
import { PageBoundary, Shell } from "./shell/shell.tsx";
import classes from "./shell/sign-in.module.css";
import { NowProvider } from "./state/now.tsx";
import { Logo } from "./style/icons.tsx";

/**
 * Must be the first import of the page: it prepares what the content security policy asks of the libraries.
 *
 * Mantine writes style elements through `innerHTML`, which Trusted Types allow only through the default policy. The
 * policy passes text without a tag. It refuses everything else, so no text of a request can become an element.
 */
interface TrustedTypes {
  createPolicy(name: string, rules: Record<string, (text: string) => string>): unknown;
}

const refuse = (kind: string) => () => {
  throw new TypeError(`This page does not turn text into ${kind}.`);
};

const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
trusted?.createPolicy("default", {
  createHTML: (text) => (text.includes("<") ? refuse("markup")() : text),
  createScript: refuse("a script"),
  createScriptURL: refuse("the address of a script"),
});

/** The nonce of this answer. The server makes one for each answer. */
const styleNonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

// Drawers and dialogs lock the page's scrolling with a style element that takes its nonce from here.
(globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = styleNonce;

/** The ten shades of a colour, the lightest first. */
const toShades = (hexes: string) => colorsTuple(hexes.split(" "));
const teal = toShades("#e3f7f4 #c6ebe5 #9bdcd2 #6fcdc0 #4cc2b2 #2fa898 #1b8f80 #0d7a6d #086b5f #04544a");
/** The surfaces of the dark theme, from text to the deepest background. */
const dark = toShades("#d9e0e7 #b6c1cb #98a6b3 #74828f #33404c #26313b #19212a #0f151b #0b1015 #070b0f");
const red = toShades("#fdecea #fad2ce #f5aaa3 #f28a81 #ff6b62 #e4483e #cf3328 #b9261c #a01d15 #7d120c");

const theme = createTheme({
  primaryColor: "teal",
  primaryShade: { light: 7, dark: 4 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  colors: { teal, dark, red },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  headings: { fontWeight: "600" },
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Drawer: {
      defaultProps: { closeButtonProps: { "aria-label": "Close" }, transitionProps: { duration: 0 } },
    },
    Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    // Named, so that the style of a filled button finds those that name no variant.
    Button: { defaultProps: { size: "compact-sm", variant: "filled" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray" } },
    TextInput: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs" } },
    // Within a form's popover: a click on an option outside would close the form.
    Select: { defaultProps: { size: "xs", allowDeselect: false, comboboxProps: { withinPortal: false } } },
    Table: { defaultProps: { verticalSpacing: 4, horizontalSpacing: 8 } },
    Menu: { defaultProps: { shadow: "md", withinPortal: true, transitionProps: { duration: 0 } } },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element #root");

createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => styleNonce}>
      <QueryClientProvider client={createQueryClient()}>
        <NowProvider>
          <App />
        </NowProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);

/** Shows the sign-in to nobody in particular, and the pages to a session. */
function App() {
  const session = useSessionQuery();
  if (session.data === undefined) {
    if (session.error !== null)
      return <ProblemBox thrown={session.error} onRetry={() => void session.refetch()} />;
    return <Loader size="sm" m="xl" aria-label="Asking who is signed in" />;
  }
  if (session.data === null) return <SignIn />;
  return (
    <Shell>
      <Switch>
        {ROUTES.map(({ path, page: Page, title }) => (
          <Route key={path} path={path}>
            <PageBoundary title={title}>
              <Suspense fallback={<Loader size="sm" m="xl" aria-label={`Loading ${title}`} />}>
                <Page />
              </Suspense>
            </PageBoundary>
          </Route>
        ))}
        <Route path="/sign-in">
          <Redirect to={takeLeftPage()} replace />
        </Route>
        <Route>
          <Empty action={<Link href="/">Go to the overview</Link>}>
            There is no page at <code>{globalThis.location.pathname.slice(0, 200)}</code>.
          </Empty>
        </Route>
      </Switch>
    </Shell>
  );
}

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
function SignIn() {
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
