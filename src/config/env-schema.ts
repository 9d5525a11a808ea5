import { resolve } from 'node:path';
import { isIP } from 'node:net';
import { z } from 'zod';
import { MODULE_NAMES_REMEDY, moduleNames } from './named-modules.js';
import { normaliseProviderUrl } from '../platform/provider-url.js';
import { parseCidrList } from '../platform/cidr.js';
import { isTimeZone, TIME_ZONE_REMEDY } from '../platform/time-zone.js';
import { IDENTITY_TOKEN_FILES_REMEDY, identityTokenFiles } from './identity-token-files.js';
import { validationMessage } from '../platform/validation-messages.js';

// For every schema of the process, also those of modules: each process reads this file first.
z.config({ customError: validationMessage });

/**
 * Every environment variable with its default and rule. Each rule has a fixed message with the remedy, so that no message
 * contains a value: half of them are secrets.
 */

/** Parses a string to a T, or rejects it with this remedy. */
function text<T>(read: (value: string) => T | undefined, remedy: string) {
  return z.string().transform((value, context): T => {
    const result = read(value.trim());
    if (result !== undefined) return result;
    context.addIssue({ code: 'custom', message: remedy });
    return z.NEVER;
  });
}

function integer(min: number, max: number) {
  return text((value) => {
    const number = /^\d{1,16}$/.test(value) ? Number(value) : NaN;
    return number >= min && number <= max ? number : undefined;
  }, `must be an integer from ${min} to ${max}`);
}

// setTimeout accepts a 32-bit signed delay; a longer one fires at once (Node.js documentation, timers).
const MAX_TIMER_MS = 2_147_483_647;
const timer = (min = 1) => integer(min, MAX_TIMER_MS);
const port = () => integer(0, 65_535);

function oneOf<const T extends string>(...choices: T[]) {
  return text((value) => choices.find((choice) => choice === value), `must be one of ${choices.join(', ')}`);
}

function matching(pattern: RegExp, remedy: string) {
  return text((value) => (pattern.test(value) ? value : undefined), remedy);
}

const VISIBLE = /^[\x21-\x7e]{1,16384}$/;
const VISIBLE_REMEDY = 'must be visible ASCII without spaces';

const masterKey = () =>
  text((value) => {
    const key = /^[A-Za-z0-9+/_-]{43}=?$/.test(value) ? Buffer.from(value, 'base64') : undefined;
    return key?.length === 32 ? key : undefined;
  }, 'must be 32 bytes in base64; generate one with: openssl rand -base64 32');

const providerUrl = z.string().transform((value, context): string => {
  const result = normaliseProviderUrl(value.trim());
  if (result.url !== undefined) return result.url;
  context.addIssue({ code: 'custom', message: result.problem });
  return z.NEVER;
});

const POSTGRES_URL_REMEDY =
  'must look like postgres://user:password@host:5432/database, special characters percent-encoded';
function postgresUrl(value: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(value) || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  try {
    // pg decodes these on connect and throws a bare URIError on a stray `%`.
    [url.username, url.password, url.pathname].forEach(decodeURIComponent);
  } catch {
    return undefined;
  }
  return url.pathname.length > 1 ? withPlainSslMode(value) : undefined;
}

/** pg checks the certificate with all of these modes, and says so in eight lines each time. With this one it is silent. */
function withPlainSslMode(url: string): string {
  if (/[?&]uselibpqcompat=/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full');
}

function proxyUrl(value: string): string | undefined {
  if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value)) return undefined;
  const url = new URL(value);
  return url.pathname === '/' && url.search === '' && url.hash === '' ? value : undefined;
}

function collectorUrl(value: string): string | undefined {
  return /^https?:\/\/[^/]/i.test(value) && URL.canParse(value) ? value : undefined;
}

/** Never a credential: its value would be stored in rows. */
const CREDENTIALS =
  /^(authorization|proxy-authorization|cookie|x-api-key|api-key|x-goog-api-key|x-gateway-key)$/;

function headerNames(value: string): readonly string[] | undefined {
  const names = value.split(',').map((name) => name.trim().toLowerCase());
  return names.every((name) => /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/.test(name) && !CREDENTIALS.test(name))
    ? names
    : undefined;
}

/** An origin: people open the console there. Plain HTTP only on this machine. */
function origin(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined;
  const url = new URL(value);
  const isPlain = url.pathname === '/' && url.search === '' && url.hash === '' && url.username === '';
  return isPlain && isSafe(url) ? url.origin : undefined;
}

function issuer(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined;
  const url = new URL(value);
  return url.search === '' && url.hash === '' && url.username === '' && isSafe(url) ? value : undefined;
}

function isSafe({ protocol, hostname }: URL): boolean {
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname))
  );
}

function groupList(value: string): readonly string[] | undefined {
  const groups = value.split(',').map((group) => group.trim());
  return groups.every((group) => /^\P{C}{1,256}$/u.test(group)) ? groups : undefined;
}

const groups = () => text(groupList, 'must be names of groups separated by commas');

function headerList(value: string): string | undefined {
  try {
    decodeURIComponent(value);
  } catch {
    return undefined;
  }
  return value.split(',').every((pair) => /^\s*[\w.-]+\s*=[\x20-\x7e]*$/.test(pair)) ? value : undefined;
}

/** With the spelling of the IANA database. */
function timeZone(value: string): string | undefined {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

const host = (value: string) =>
  isIP(value) !== 0 || /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(value)
    ? value
    : undefined;

export const envSchema = z.object({
  NODE_ENV: oneOf('production', 'development', 'test').default('development'),
  HOST: text(host, 'must be an address or a host name, without scheme, brackets or port').default(
    '127.0.0.1',
  ),
  PORT: port().default(8080),
  ADMIN_PORT: port().optional(),
  CONSOLE: oneOf('on', 'off').default('on'),
  MODULES: text(moduleNames, MODULE_NAMES_REMEDY).default([]),
  DATABASE_URL: text(postgresUrl, POSTGRES_URL_REMEDY).optional(),
  DATABASE_DIRECT_URL: text(postgresUrl, POSTGRES_URL_REMEDY).optional(),
  DATABASE_POOL_SIZE: integer(1, 1_000).default(10),
  DATA_DIR: text((value) => (value.includes('\0') ? undefined : resolve(value)), 'must be a folder').default(
    () => resolve('data'),
  ),
  PROVIDER_URL: providerUrl.optional(),
  PROVIDER_KEY: matching(/^[\x21-\x7e]+$/, 'must be visible ASCII without spaces').optional(),
  PROVIDER_AUTH: oneOf('bearer', 'x-api-key', 'api-key', 'x-goog-api-key', 'client').default('bearer'),
  // RFC 6750 2.1 b64token: what a client can send after `Bearer `.
  ADMIN_TOKEN: matching(
    /^(?=.{16,1024}$)[A-Za-z0-9._~+/-]+=*$/,
    'must be 16 characters or more of A-Z a-z 0-9 - . _ ~ + / (then =)',
  ).optional(),
  MASTER_KEY: masterKey().optional(),
  MASTER_KEY_PREVIOUS: masterKey().optional(),
  WORKERS: text(
    (value) => (value === 'auto' ? ('auto' as const) : integer(1, 256).safeParse(value).data),
    'must be an integer from 1 to 256, or auto',
  ).default(1),
  MAX_BODY_BYTES: integer(1, 2 ** 40).default(1_073_741_824),
  TRUSTED_PROXIES: text(
    (value) => parseCidrList(value) ?? undefined,
    'must be addresses or CIDR networks separated by commas, such as 10.0.0.0/8',
  ).default([]),
  CLIENT_HEADERS_TIMEOUT_MS: timer().default(60_000),
  CLIENT_IDLE_TIMEOUT_MS: timer().default(900_000),
  UPSTREAM_CONNECT_TIMEOUT_MS: timer().default(10_000),
  UPSTREAM_HEADERS_TIMEOUT_MS: timer().default(900_000),
  UPSTREAM_IDLE_TIMEOUT_MS: timer().default(900_000),
  UPSTREAM_PROXY_URL: text(
    proxyUrl,
    'must look like http://proxy.example:3128, optionally with user:password@, without a path',
  ).optional(),
  IDENTITY_TOKEN_FILES: text(identityTokenFiles, IDENTITY_TOKEN_FILES_REMEDY).default([]),
  CLOUD_IDENTITY: oneOf('aws', 'google', 'azure').optional(),
  // As ECS and EKS set them. The file is read at each exchange, because the token in it is replaced.
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: matching(VISIBLE, VISIBLE_REMEDY).optional(),
  AWS_CONTAINER_CREDENTIALS_FULL_URI: matching(VISIBLE, VISIBLE_REMEDY).optional(),
  AWS_CONTAINER_AUTHORIZATION_TOKEN: matching(VISIBLE, VISIBLE_REMEDY).optional(),
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: matching(/^\/[^\0]+$/, 'must be an absolute path').optional(),
  JOURNAL_FSYNC_MS: integer(0, 60_000).default(100),
  JOURNAL_KEEP_MS: integer(0, 86_400_000).default(600_000),
  JOURNAL_KEEP_BYTES: integer(0, Number.MAX_SAFE_INTEGER).default(1_073_741_824),
  REQUEST_LOG_RETENTION_DAYS: integer(1, 36_500).default(90),
  JOBS: oneOf('on', 'off').default('on'),
  REFUSALS: oneOf('on', 'off').default('on'),
  REFUSAL_RETENTION_DAYS: integer(1, 36_500).default(90),
  REQUEST_LOG_MAX_BYTES: integer(1_048_576, Number.MAX_SAFE_INTEGER).optional(),
  REQUEST_LOG_ARCHIVE: matching(/^[a-z][a-z0-9-]{0,62}$/, 'must be the name of a sink').optional(),
  REQUEST_LOG_CLIENT: oneOf('full', 'truncated', 'none').default('full'),
  REQUEST_LOG_USERS: oneOf('plain', 'hashed', 'none').default('plain'),
  REQUEST_LOG_SUBJECT: oneOf('full', 'id', 'none').default('full'),
  ATTRIBUTION: oneOf('off', 'headers', 'all').default('all'),
  USER_HEADERS: text(
    headerNames,
    'must be names of headers separated by commas, such as x-openwebui-user-email; credentials are not allowed',
  ).default([]),
  USAGE_RETENTION_DAYS: integer(1, 36_500).default(800),
  REPORT_TIMEZONE: text((value) => (isTimeZone(value) ? value : undefined), TIME_ZONE_REMEDY).default('UTC'),
  KEY_CACHE_STALE_MS: timer(0).default(600_000),
  BUDGET_TIMEZONE: text(timeZone, 'must be an IANA time zone, such as Europe/Berlin').default('UTC'),
  BUDGET_HELP: matching(
    /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,300}$/u,
    'must be a sentence of at most 300 printable characters',
  ).optional(),
  LIMITS_WITHOUT_DATABASE: oneOf('reject', 'allow').default('reject'),
  SHUTDOWN_DELAY_MS: integer(0, 3_600_000).default(0),
  SHUTDOWN_GRACE_MS: integer(0, 86_400_000).default(30_000),
  FINISH_MAX_SECONDS: integer(1, 86_400).default(600),
  FINISH_MAX_CALLS: integer(0, 1_000_000).default(256),
  MIGRATE: oneOf('on', 'off').default('on'),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent').default('info'),
  PUBLIC_URL: text(
    origin,
    'must look like https://gateway.example.com, without a path; http only for localhost',
  ).optional(),
  GATEWAY_URL: text(
    origin,
    'must look like https://gateway.example.com, without a path; http only for localhost',
  ).optional(),
  OIDC_ISSUER: text(issuer, 'must look like https://login.example.com; http only for localhost').optional(),
  OIDC_CLIENT_ID: matching(/^[\x21-\x7e]{1,512}$/, 'must be visible ASCII without spaces').optional(),
  OIDC_CLIENT_SECRET: matching(/^[\x20-\x7e]{1,1024}$/, 'must be ASCII').optional(),
  OIDC_SCOPES: matching(
    /^(?=(.* )?openid( |$))[\x21-\x7e]+( [\x21-\x7e]+)*$/,
    'must be scopes separated by spaces, openid among them',
  ).default('openid profile email'),
  OIDC_ROLE_CLAIM: matching(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII without spaces').default('groups'),
  OIDC_ADMINS: groups().default([]),
  OIDC_VIEWERS: groups().default([]),
  OIDC_TEAM_PREFIX: matching(/^[\x20-\x7e]{1,256}$/, 'must be ASCII').optional(),
  OIDC_LEAD_PREFIX: matching(/^[\x20-\x7e]{1,256}$/, 'must be ASCII').optional(),
  SIGN_IN: oneOf('on', 'off').default('off'),
  // As the OpenTelemetry specification names them.
  OTEL_TRACES_EXPORTER: oneOf('otlp', 'none').optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: text(collectorUrl, 'must look like http://collector.example:4318').optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: text(
    collectorUrl,
    'must look like http://collector.example:4318/v1/traces',
  ).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: text(
    headerList,
    'must look like name=value,name=value, values percent-encoded',
  ).optional(),
  OTEL_SERVICE_NAME: matching(/^[\x21-\x7e]{1,255}$/, 'must be visible ASCII').default('postern'),
});

export type EnvVariable = keyof typeof envSchema.shape;

/** Variables that also come as `NAME_FILE`, for orchestrators that mount secrets as files. */
export const SECRET_VARIABLES = [
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'PROVIDER_KEY',
  'ADMIN_TOKEN',
  'MASTER_KEY',
  'MASTER_KEY_PREVIOUS',
  'UPSTREAM_PROXY_URL',
  'OIDC_CLIENT_SECRET',
  'OTEL_EXPORTER_OTLP_HEADERS',
] as const satisfies readonly EnvVariable[];
