import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import type {
  TokenVerdict,
  TrustFailuresView,
  TrustFailureView,
  TrustView,
} from '../../../identity/trusts/trusts.schema.js';
import { path } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { addPageOptions, listPages, type PageOptions } from '../../list-options.js';
import { readSecret } from '../../prompt.js';
import { action, type Session } from '../../session.js';
import type { Column } from '../../table.js';
import { exactTime, minuteTime } from '../../times.js';

interface TrustOptions {
  name?: string;
  key?: string;
  preset?: string;
  issuer?: string;
  audience?: string;
  jwks?: string;
  claim?: string[];
  repository?: string;
  repositoryId?: string;
  ref?: string[];
  anyRef?: boolean;
  cidr?: string[];
  tokenMinutes?: string;
  longestJwtMinutes?: string;
  maxLive?: string;
}

const TRUST_ARGUMENT = ['<trust>', 'name or ID of the trust'] as const;

/** `postern trusts …` */
export function trustsCommand(): Command {
  const trusts = new Command('trusts').description(
    'issuers whose identity tokens are exchanged for short-lived tokens of a key',
  );

  addSettings(
    trusts
      .command('create')
      .description('create a trust')
      .argument('<name>', 'name of the trust; requests for a token give it')
      .option('--preset <preset>', 'github, gitlab, kubernetes, aws, google, azure or oidc (default: oidc)'),
  )
    .option('--json', 'print the trust as JSON')
    .addHelpText(
      'after',
      `
Create trusts once all replicas run a version that knows them.

Examples:
  postern trusts create api-ci --key search/ci --preset github --repository-id 821093847 --ref refs/heads/main
  postern trusts create worker --key search/worker --preset kubernetes --issuer https://kubernetes.default.svc \\
    --jwks keys.json --claim sub=system:serviceaccount:prod:worker`,
    )
    .action(
      action<TrustOptions>(async ({ api, out }, options, name) => {
        if (options.key === undefined) throw new CliError('--key: give the key whose tokens are issued');
        if (Object.keys(claimsOf(options)).length === 0)
          throw new CliError('--claim: give a condition, such as sub=system:serviceaccount:prod:worker');
        const { preset } = options;
        const body = { name, ...(preset !== undefined && { preset }), ...membersOf(options) };
        const trust = await api.post<TrustView>('trusts', body);
        out.result(trust, () => `Created trust ${trust.name} for the key ${trust.key} (${trust.id}).`);
        out.note(`Tokens of ${trust.issuer} need the audience ${trust.audience}.`);
      }),
    );

  addPageOptions(trusts.command('list').description('list trusts, newest first'))
    .option('--json', 'print the page as JSON')
    .addHelpText('after', '\nExample:\n  postern trusts list --all')
    .action(
      action<PageOptions>(async ({ api, out }, options) => {
        const page = await listPages<Page<TrustView>>(api, 'trusts', {}, options);
        out.page(page, { noun: 'trusts', columns: COLUMNS });
      }),
    );

  trusts
    .command('show')
    .description('show a trust')
    .argument(...TRUST_ARGUMENT)
    .option('--json', 'print the trust as JSON')
    .addHelpText('after', '\nExample:\n  postern trusts show api-ci')
    .action(
      action(async ({ api, out }, _, text) => {
        const trust = await api.get<TrustView>(path('trusts', text));
        out.result(trust, () =>
          out.fields([
            ['id', trust.id],
            ['name', trust.name],
            ['key', trust.key],
            ['state', stateOf(trust)],
            ['preset', trust.preset],
            ['issuer', trust.issuer],
            ['audience', trust.audience],
            ['keys', trust.jwks === null ? 'read from the issuer' : `${trust.jwks.keys.length} stored`],
            ...Object.entries(trust.claims).map(
              ([name, values]) => [`claim ${name}`, values.map(shownValue).join(', ')] as const,
            ),
            ['any ref', trust.any_ref ? 'yes' : 'no'],
            ['networks', trust.cidrs?.join(', ') ?? 'all'],
            ['token minutes', String(trust.token_minutes)],
            ['longest JWT', `${trust.longest_jwt_minutes} minutes`],
            ['tokens at most', String(trust.max_live)],
            ['created', exactTime(trust.created_at)],
            ['tokens now', String(trust.live_tokens)],
            ['last used', trust.last_used_at && exactTime(trust.last_used_at)],
          ]),
        );
      }),
    );

  addSettings(
    trusts
      .command('update')
      .description('change a trust')
      .argument(...TRUST_ARGUMENT)
      .option('--name <name>', 'new name'),
  )
    .option('--json', 'print the trust as JSON')
    .addHelpText(
      'after',
      '\nWith --claim, --repository-id or --ref, they are all its conditions: those that are not given are dropped.\n\nExample:\n  postern trusts update api-ci --token-minutes 15',
    )
    .action(action<TrustOptions>(update));

  for (const [name, enabled] of [
    ['disable', false],
    ['enable', true],
  ] as const) {
    trusts
      .command(name)
      .description(
        enabled
          ? 'issue tokens for a trust again; those that it issued before and that have not expired work again'
          : 'stop all tokens of a trust and issue none, until it is enabled',
      )
      .argument(...TRUST_ARGUMENT)
      .option('--json', 'print the trust as JSON')
      .addHelpText('after', `\nExample:\n  postern trusts ${name} api-ci`)
      .action(
        action(async ({ api, out }, _, text) => {
          const trust = await api.patch<TrustView>(path('trusts', text), { enabled });
          out.result(trust, () => `Trust ${trust.name} is ${stateOf(trust)}.`);
        }),
      );
  }

  trusts
    .command('test')
    .description(
      'Hold an identity token against a trust, check by check. Prompts for it, or reads it from standard input.',
    )
    .argument(...TRUST_ARGUMENT)
    .option('--json', 'print the verdict as JSON')
    .addHelpText('after', '\nExample:\n  postern trusts test api-ci < token.jwt')
    .action(
      action(async ({ api, out }, _, text) => {
        const token = (await readSecret('Identity token')).trim();
        const verdict = await api.post<TokenVerdict>(path('trusts', text, 'test'), { token });
        out.result(verdict, () =>
          [
            out.fields(
              verdict.checks.map(({ name, detail }) => [
                name,
                detail === null ? 'met' : `not met: ${detail}`,
              ]),
            ),
            verdict.accepted ? `It would be accepted, as ${verdict.subject}.` : 'It would be rejected.',
          ].join('\n\n'),
        );
      }),
    );

  trusts
    .command('failures')
    .description('list the last tokens that a trust has not accepted, newest first')
    .argument(...TRUST_ARGUMENT)
    .option('--json', 'print the failures as JSON')
    .addHelpText('after', '\nExample:\n  postern trusts failures api-ci')
    .action(
      action(async ({ api, out }, _, text) => {
        const { data } = await api.get<TrustFailuresView>(path('trusts', text, 'failures'));
        out.page({ data, next_cursor: null }, { noun: 'failures', columns: FAILURE_COLUMNS });
      }),
    );

  trusts
    .command('delete')
    .description('delete a trust and end all of its tokens')
    .argument(...TRUST_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern trusts delete api-ci')
    .action(
      action(async (session, _, text) => {
        await session.confirm(`Delete trust ${text}? Its tokens end at once.`);
        await session.api.delete(path('trusts', text));
        session.out.result({ removed: text }, () => `Deleted trust ${text}.`);
      }),
    );

  return trusts;
}

function addSettings(command: Command): Command {
  return command
    .option('--key <key>', 'the key whose tokens are issued: its ID, or team/name')
    .option('--issuer <url>', 'iss of the tokens (default: that of the preset)')
    .option('--audience <text>', 'aud of the tokens (default: GATEWAY_URL)')
    .option('--jwks <file>', 'public keys of an issuer that Postern cannot reach, or none')
    .option(
      '--claim <name=value...>',
      'a claim and an accepted value, several times for several; true and false are booleans; in double quotes, they are text',
    )
    .option('--repository-id <id>', 'of GitHub: as --claim repository_id=ID')
    .option('--repository <owner/name>', 'of GitHub: as --claim repository=OWNER/NAME, besides the ID')
    .option('--ref <refs...>', 'as --claim ref=REF')
    .option('--any-ref', 'of GitHub and GitLab: every branch, tag and environment may use it')
    .option('--no-any-ref', 'the conditions name a branch, tag, environment or workflow, the default')
    .option('--cidr <networks...>', 'networks that may use it, or all')
    .option('--token-minutes <n>', 'how long a token works, from 5 to 60 (default: 60)')
    .option('--longest-jwt-minutes <n>', 'longest lifetime of an accepted identity token')
    .option('--max-live <n>', 'how many of its tokens may work at a time (default: 1000)');
}

async function update({ api, out }: Session, options: TrustOptions, text?: string): Promise<void> {
  const { name } = options;
  const change = { ...(name !== undefined && { name }), ...membersOf(options) };
  if (Object.keys(change).length === 0)
    throw new CliError(
      'nothing to change: give --name, --key, --issuer, --audience, --jwks, --claim, --any-ref, --cidr, --token-minutes, ' +
        '--longest-jwt-minutes or --max-live',
    );
  const trust = await api.patch<TrustView>(path('trusts', text!), change);
  out.result(trust, () => `Updated trust ${trust.name} (${trust.id}).`);
}

/** The options that were given, as fields of the admin API. */
function membersOf(options: TrustOptions): object {
  const { key, issuer, audience, jwks, anyRef, cidr, tokenMinutes, longestJwtMinutes, maxLive } = options;
  const claims = claimsOf(options);
  return {
    ...(key !== undefined && { key }),
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
    ...(jwks !== undefined && { jwks: jwks === 'none' ? null : jsonFile(jwks) }),
    ...(Object.keys(claims).length > 0 && { claims }),
    ...(anyRef !== undefined && { any_ref: anyRef }),
    ...(cidr !== undefined && { cidrs: cidr[0] === 'all' ? null : cidr }),
    ...(tokenMinutes !== undefined && { token_minutes: numberOf(tokenMinutes) }),
    ...(longestJwtMinutes !== undefined && { longest_jwt_minutes: numberOf(longestJwtMinutes) }),
    ...(maxLive !== undefined && { max_live: numberOf(maxLive) }),
  };
}

function claimsOf({
  claim = [],
  repository,
  repositoryId,
  ref = [],
}: TrustOptions): Record<string, unknown[]> {
  // No prototype: every name is that of a claim, also "constructor".
  const claims = Object.create(null) as Record<string, unknown[]>;
  const add = (name: string, value: unknown) => (claims[name] ??= []).push(value);
  if (repositoryId !== undefined) add('repository_id', repositoryId);
  if (repository !== undefined) add('repository', repository);
  for (const one of ref) add('ref', one);
  for (const one of claim) {
    const at = one.indexOf('=');
    if (at < 1)
      throw new CliError(`--claim: ${one} must be name=value, such as sub=system:serviceaccount:prod:worker`);
    add(one.slice(0, at), valueOf(one.slice(at + 1)));
  }
  return claims;
}

/** Text that looks like a boolean stands in quotes. */
function shownValue(value: unknown): string {
  return value === 'true' || value === 'false' ? `"${value}"` : String(value);
}

/** Values are text, but for true and false: in double quotes, these are text too. */
function valueOf(text: string): string | boolean {
  if (/^"(?:true|false)"$/.test(text)) return text.slice(1, -1);
  return text === 'true' || text === 'false' ? text === 'true' : text;
}

/** What is not a number is sent as it is, so that the API names the rule. */
function numberOf(text: string): number | string {
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/** @throws CliError if it cannot be read */
function jsonFile(name: string): unknown {
  try {
    return JSON.parse(readFileSync(name, 'utf8'));
  } catch (error) {
    throw new CliError(`--jwks: ${name} cannot be read as JSON: ${(error as Error).message}`);
  }
}

function stateOf({ enabled }: TrustView): string {
  return enabled ? 'enabled' : 'disabled';
}

const COLUMNS: readonly Column<TrustView>[] = [
  { head: 'NAME', cell: ({ name }) => name, min: 12 },
  { head: 'KEY', cell: ({ key }) => key },
  { head: 'STATE', cell: stateOf },
  { head: 'PRESET', cell: ({ preset }) => preset },
  { head: 'ISSUER', cell: ({ issuer }) => issuer, drop: 3 },
  { head: 'TOKENS', cell: ({ live_tokens: count }) => String(count) },
  { head: 'LAST USED', cell: ({ last_used_at: at }) => minuteTime(at) },
  { head: 'CREATED', cell: ({ created_at: at }) => minuteTime(at), drop: 2 },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

const FAILURE_COLUMNS: readonly Column<TrustFailureView>[] = [
  { head: 'AT', cell: ({ at }) => exactTime(at) },
  { head: 'REASON', cell: ({ reason }) => reason, min: 16 },
  { head: 'CLAIMS', cell: ({ claims }) => JSON.stringify(claims), min: 16 },
];
