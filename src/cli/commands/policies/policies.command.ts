import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Page } from '../../../database/page.js';
import { cliCommand } from '../../../platform/cli-command.js';
import type { PolicyTestResult, PolicyView } from '../../../policies-by-url/policies.schema.js';
import { path } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { readSecret } from '../../prompt.js';
import { action, type Session } from '../../session.js';
import type { Column } from '../../table.js';
import { exactTime } from '../../times.js';

interface PolicyOptions {
  name?: string;
  url?: string;
  secret?: boolean;
  team?: string[];
  key?: string[];
  model?: string[];
  allCalls?: boolean;
  send?: string;
  timeoutMs?: string;
  onFailure?: string;
  cacheSeconds?: string;
  order?: string;
}

interface TestOptions {
  body?: string;
  key?: string;
  model?: string;
  endpoint?: string;
  endUser?: string;
}

const POLICY_ARGUMENT = ['<policy>', 'name or ID of the policy'] as const;

/** `postern policies …` */
export function policiesCommand(): Command {
  const policies = new Command('policies').description('URLs that are asked whether a call is forwarded');

  policies
    .command('list')
    .description('list policies in the order in which they are asked')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExample:\n  postern policies list')
    .action(
      action(async ({ api, out }) => {
        const page = await api.get<Page<PolicyView>>('policies');
        out.page(page, { noun: 'policies', columns: COLUMNS });
      }),
    );

  addSettings(
    policies
      .command('create')
      .description('create a policy; prompts for its secret, or reads it from standard input')
      .argument('<name>', 'a name for it, also in metrics and rejections')
      .requiredOption('--url <url>', 'where it is asked'),
  )
    .option('--json', 'print the policy as JSON')
    .addHelpText(
      'after',
      `
The secret signs each request: whsec_ and the base64 of 24 to 64 bytes. Without
--team, --key or --model, the policy is asked about all calls.

Create policies once all replicas run a version that knows them.

Examples:
  echo "whsec_$(openssl rand -base64 32)" > policy.key
  postern policies create dlp --url https://filter.example.com/decide --send body --team support < policy.key`,
    )
    .action(action<PolicyOptions>(create));

  policies
    .command('show')
    .description('show a policy')
    .argument(...POLICY_ARGUMENT)
    .option('--json', 'print the policy as JSON')
    .addHelpText('after', '\nExample:\n  postern policies show dlp')
    .action(
      action(async ({ api, out }, _, text) => {
        const policy = await api.get<PolicyView>(path('policies', text));
        out.result(policy, () =>
          out.fields([
            ['id', policy.id],
            ['name', policy.name],
            ['url', policy.url],
            ['secret', policy.secret_state],
            ['state', stateOf(policy)],
            ['asked about', scopeOf(policy)],
            ['gets', policy.send],
            ['timeout', `${policy.timeout_ms} ms`],
            ['on failure', policy.on_failure],
            ['cache', `${policy.cache_seconds} s`],
            ['order', String(policy.order)],
            ['created', exactTime(policy.created_at)],
            ['changed', exactTime(policy.updated_at)],
          ]),
        );
      }),
    );

  addSettings(
    policies
      .command('update')
      .description('change a policy; earlier decisions count no longer')
      .argument(...POLICY_ARGUMENT)
      .option('--name <name>', 'new name')
      .option('--url <url>', 'where it is asked')
      .option('--secret', 'replace the secret: prompts for it, or reads it from standard input')
      .option('--all-calls', 'ask about all calls'),
  )
    .option('--json', 'print the policy as JSON')
    .addHelpText(
      'after',
      `
Here --url is that of the policy. With --team, --key or --model, they are all
that the policy is asked about: those that are not given are dropped.

Example:
  postern policies update dlp --timeout-ms 500 --on-failure allow`,
    )
    .action(action<PolicyOptions>(update));

  for (const [name, enabled] of [
    ['disable', false],
    ['enable', true],
  ] as const) {
    policies
      .command(name)
      .description(enabled ? 'ask a policy again' : 'forward calls without asking a policy')
      .argument(...POLICY_ARGUMENT)
      .option('--json', 'print the policy as JSON')
      .addHelpText('after', `\nExample:\n  postern policies ${name} dlp`)
      .action(
        action(async ({ api, out }, _, text) => {
          const policy = await api.patch<PolicyView>(path('policies', text), { enabled });
          out.result(policy, () => `Policy ${policy.name} is ${stateOf(policy)}.`);
        }),
      );
  }

  policies
    .command('test')
    .description('ask a policy about a call that is made up, and report what is wrong')
    .argument(...POLICY_ARGUMENT)
    .option('--body <file>', 'body of the call; it is sent if the policy gets bodies')
    .option('--model <model>', 'model of the call')
    .option('--key <key>', 'key of the call: its ID, or team/name')
    .option('--endpoint <path>', 'path of the call (default: /v1/chat/completions)')
    .option('--end-user <user>', 'end user of the call')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExample:\n  postern policies test dlp --model gpt-5-mini --body request.json')
    .action(action<TestOptions>(test));

  policies
    .command('delete')
    .description('delete a policy')
    .argument(...POLICY_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern policies delete dlp')
    .action(
      action(async (session, _, text) => {
        await session.confirm(`Delete policy ${text}? Its calls are forwarded without it.`);
        await session.api.delete(path('policies', text));
        session.out.result({ deleted: text }, () => `Deleted policy ${text}.`);
      }),
    );

  return policies;
}

function addSettings(command: Command): Command {
  return command
    .option('--team <teams...>', 'ask about calls of these teams, by name or ID')
    .option('--key <keys...>', 'ask about calls of these keys as well, each by its ID or as team/name')
    .option('--model <models...>', 'only about calls to these models; * stands for any characters')
    .option('--send <what>', 'head: facts of the call (default); body: its body as well')
    .option('--timeout-ms <n>', 'milliseconds that a decision may take, from 10 to 30000 (default: 300)')
    .option('--on-failure <what>', 'reject (default) or allow calls that it does not decide about')
    .option('--cache-seconds <n>', 'how long a decision counts for calls like it (default: 0)')
    .option('--order <n>', 'policies are asked in ascending order (default: 0)');
}

async function create({ api, out }: Session, options: PolicyOptions, name?: string): Promise<void> {
  const secret = (await readSecret('Secret')).trim();
  const policy = await api.post<PolicyView>('policies', { name, secret, ...membersOf(options) });
  out.result(policy, () => `Created policy ${policy.name} (${policy.id}).`);
  out.note(`Test it: ${cliCommand(`policies test ${policy.name}`)}`);
}

async function update({ api, out }: Session, options: PolicyOptions, text?: string): Promise<void> {
  const { name } = options;
  const change = { ...(name !== undefined && { name }), ...membersOf(options) };
  if (Object.keys(change).length === 0 && options.secret !== true)
    throw new CliError(
      'nothing to change: give --name, --url, --secret, --team, --key, --model, --all-calls, --send, --timeout-ms, ' +
        '--on-failure, --cache-seconds or --order',
    );
  const secret = options.secret === true && { secret: (await readSecret('Secret')).trim() };
  const policy = await api.patch<PolicyView>(path('policies', text!), { ...change, ...secret });
  out.result(policy, () => `Updated policy ${policy.name} (${policy.id}).`);
}

async function test({ api, out }: Session, options: TestOptions, text?: string): Promise<void> {
  const { body, key, model, endpoint, endUser } = options;
  const result = await api.post<PolicyTestResult>(path('policies', text!, 'test'), {
    ...(body !== undefined && { body: textOf(body) }),
    ...(key !== undefined && { key }),
    ...(model !== undefined && { model }),
    ...(endpoint !== undefined && { endpoint }),
    ...(endUser !== undefined && { end_user: endUser }),
  });
  if (!result.ok) process.exitCode = 1;
  if (out.isJson) {
    out.json(result);
    return;
  }
  const { decision } = result;
  const code = out.styled(result.code, result.ok ? 'green' : 'red');
  const lines = [`${code}, ${Math.round(result.duration_ms)} ms`, result.message];
  if (decision?.allow === false) lines.push(`${decision.code}: ${decision.message}`);
  if (decision?.tags != null)
    lines.push(
      `Tags: ${Object.entries(decision.tags)
        .map((tag) => tag.join('='))
        .join(', ')}`,
    );
  if (result.ok) console.log(lines.join('\n'));
  else console.error(lines.join('\n'));
}

/** The options that were given, as fields of the admin API. */
function membersOf(options: PolicyOptions): object {
  const { url, team, key, model, allCalls, send, timeoutMs, onFailure, cacheSeconds, order } = options;
  const isScoped = team !== undefined || key !== undefined || model !== undefined;
  if (isScoped && allCalls === true)
    throw new CliError('--all-calls: give it, or --team, --key and --model, but not both');
  return {
    ...(url !== undefined && { url }),
    ...(allCalls === true && { applies_to: {} }),
    ...(isScoped && { applies_to: { teams: team, keys: key, models: model } }),
    ...(send !== undefined && { send }),
    ...(timeoutMs !== undefined && { timeout_ms: numberOf(timeoutMs) }),
    ...(onFailure !== undefined && { on_failure: onFailure }),
    ...(cacheSeconds !== undefined && { cache_seconds: numberOf(cacheSeconds) }),
    ...(order !== undefined && { order: numberOf(order) }),
  };
}

/** What is not a number is sent as it is, so that the API names the rule. */
function numberOf(text: string): number | string {
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/** @throws CliError if it cannot be read */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CliError(`--body: ${resolve(file)} cannot be read (${code ?? 'error'}); check its path`);
  }
}

function stateOf({ enabled }: PolicyView): string {
  return enabled ? 'enabled' : 'disabled';
}

function scopeOf({ applies_to: { teams, keys, models } }: PolicyView): string {
  const who = [...(teams ?? []).map((team) => `team ${team}`), ...(keys ?? []).map((key) => `key ${key}`)];
  const whose = who.length === 0 ? 'all calls' : who.join(', ');
  return models === null ? whose : `${whose}, to ${models.join(', ')}`;
}

const COLUMNS: readonly Column<PolicyView>[] = [
  { head: 'NAME', cell: ({ name }) => name, min: 12 },
  { head: 'STATE', cell: stateOf },
  { head: 'ASKED ABOUT', cell: scopeOf, min: 12 },
  { head: 'GETS', cell: ({ send }) => send },
  { head: 'ON FAILURE', cell: ({ on_failure: what }) => what },
  { head: 'TIMEOUT', cell: ({ timeout_ms: ms }) => `${ms} ms`, align: 'right', drop: 3 },
  { head: 'CACHE', cell: ({ cache_seconds: s }) => `${s} s`, align: 'right', drop: 2 },
  { head: 'URL', cell: ({ url }) => url, min: 12, drop: 4 },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];
