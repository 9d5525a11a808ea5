import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import { cliCommand } from '../../platform/cli-command.js';
import type { AuthSettings } from '../../providers/credentials/auth-kinds.js';
import { PRESETS } from '../../providers/presets.js';
import type { ProbeResult, ProviderView } from '../../providers/providers.schema.js';
import type { TeamView } from '../../teams/teams.schema.js';
import { path } from '../api.js';
import { CliError } from '../cli-error.js';
import { action, type Session } from '../session.js';
import { notePermittedKeys } from './key-output.js';
import {
  addAuthOptions,
  type AuthOptions,
  authSettingsOf,
  readProviderSecret,
  takesSecret,
} from './providers/provider-auth.js';
import { columnsOf, providerLines, statusOf } from './providers/provider-output.js';
import { accountName, admitAccount } from './providers/team-account.js';
import { addResealCommand } from './reseal.command.js';

interface AddOptions extends AuthOptions {
  preset?: string;
  url?: string;
  auth?: string;
  catalog?: string;
  onDisconnect?: string;
  /** --secret, --no-secret, or neither. */
  secret?: boolean;
  default?: boolean;
  team?: string;
}

const PRESET_NAMES = Object.keys(PRESETS).join(', ');
const NAME_ARGUMENT = ['<name>', 'provider name'] as const;
const URL_OPTION = ['--url <url>', 'base URL without /v1, for example https://api.openai.com'] as const;
const CATALOG_OPTION = [
  '--catalog <name>',
  'price list for its models, or none (default: the one of the URL)',
] as const;

const ON_DISCONNECT_OPTION = [
  '--on-disconnect <rule>',
  'when a client disconnects: cancel the call, or finish it: read its usage',
] as const;

/** `postern providers …` */
export function providersCommand(): Command {
  const providers = new Command('providers').description('providers that calls are forwarded to');

  const addCommand = providers
    .command('add')
    .description('add a provider; prompts for its secret, or reads it from standard input')
    .argument('<name>', 'name in /p/<name>/…, or a preset')
    .option('--preset <preset>', 'take URL and auth from a preset (default: the preset with this name)')
    .option(...URL_OPTION)
    .option(...CATALOG_OPTION)
    .option(...ON_DISCONNECT_OPTION)
    .option('--secret', 'prompt for a secret even if the preset needs none')
    .option('--no-secret', 'the provider needs no secret')
    .option('--default', 'make it the default provider for /v1, with --team only of the team')
    .option('--team <team>', 'for the keys of this team only; a preset is then called <preset>-<team>')
    .option('--json', 'print the provider as JSON')
    .addHelpText(
      'after',
      `
Here --url is that of the provider. For another gateway, use POSTERN_URL or "postern --url <url> providers add …".

Presets: ${PRESET_NAMES}

Examples:
  postern providers add groq
  postern providers add openai --default < openai-key.txt
  postern providers add openai --team search
  postern providers add azure --url ${PRESETS.azure!.example}
  postern providers add claude-code
  postern providers add bedrock --region eu-central-1 --access-key-id AKIA… < secret-access-key.txt
  postern providers add vertex < service-account.json
  postern providers add vertex --source metadata
  postern providers add bedrock --region eu-central-1 --credentials web-identity --identity-token aws --role-arn arn:aws:iam::…
  postern providers add big-box --preset vllm --url http://10.0.0.5:8000`,
    )
    .action(action(add));
  addAuthOptions(addCommand);

  providers
    .command('list')
    .description('list providers, without their secrets')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExamples:\n  postern providers list\n  postern providers list --json')
    .action(
      action(async ({ api, out }) => {
        const page = await api.get<Page<ProviderView>>('providers');
        out.page(page, { noun: 'providers', columns: columnsOf(page.data) });
      }),
    );

  providers
    .command('show')
    .description('show a provider, without its secret')
    .argument(...NAME_ARGUMENT)
    .option('--json', 'print the provider as JSON')
    .addHelpText('after', '\nExample:\n  postern providers show groq')
    .action(action(show));

  const updateCommand = providers
    .command('update')
    .description('change the URL, the secret or other settings of a provider')
    .argument(...NAME_ARGUMENT)
    .option(...URL_OPTION)
    .option(...CATALOG_OPTION)
    .option(...ON_DISCONNECT_OPTION)
    .option('--secret', 'replace the secret: prompts for it, or reads it from standard input')
    .option('--no-secret', 'remove the secret')
    .option('--default', 'make it the default provider for /v1')
    .option('--no-default', 'no longer the default provider')
    .option('--team <team>', 'for the keys of this team only, or none: for all teams')
    .option('--json', 'print the provider as JSON')
    .addHelpText(
      'after',
      `
Here --url is that of the provider. A URL on another host needs the secret again: add --secret.

Examples:
  postern providers update openai --secret < new-openai-key.txt
  postern providers update big-box --url http://10.0.0.6:8000 --secret`,
    )
    .action(action(update));
  addAuthOptions(updateCommand);

  for (const [name, enabled] of [
    ['disable', false],
    ['enable', true],
  ] as const) {
    providers
      .command(name)
      .description(enabled ? 'forward calls to a disabled provider again' : 'reject calls to a provider')
      .argument(...NAME_ARGUMENT)
      .option('--json', 'print the provider as JSON')
      .addHelpText('after', `\nExample:\n  postern providers ${name} groq`)
      .action(
        action(async ({ api, out }, _, text) => {
          const provider = await api.patch<ProviderView>(path('providers', text), { enabled });
          out.result(provider, () => `Provider ${provider.name} is ${statusOf(provider)}.`);
        }),
      );
  }

  providers
    .command('test')
    .description('send a test request to a provider and report problems; exit code 1 if there is one')
    .argument(...NAME_ARGUMENT)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExample:\n  postern providers test groq')
    .action(action(test));

  providers
    .command('remove')
    .description('remove a provider and its secret; calls to it are then rejected')
    .argument(...NAME_ARGUMENT)
    .option('--yes', 'do not ask')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern providers remove groq')
    .action(
      action(async (session, _, name) => {
        await session.confirm(`Remove provider ${name} and its secret? Calls to it are rejected at once.`);
        await session.api.delete(path('providers', name));
        session.out.result({ removed: name }, () => `Removed provider ${name}.`);
        await notePermittedKeys(session, name);
      }),
    );

  addResealCommand(providers);
  return providers;
}

async function add(session: Session, options: AddOptions, name?: string) {
  const { api, out } = session;
  const preset = PRESETS[options.preset ?? name!];
  if (preset === undefined && options.preset !== undefined)
    throw new CliError(`--preset must be one of ${PRESET_NAMES}`);
  const region = options.region ?? '';
  const url = options.url ?? preset?.url?.replace('<region>', region) ?? undefined;
  if (options.url === undefined && region === '' && preset?.url?.includes('<region>'))
    throw new CliError('--region must be given, for example eu-central-1');
  if (url === undefined) {
    const remedy = preset?.example ? `must be given, for example ${preset.example}` : 'must be given';
    const why = preset ? '' : `, because ${name!} is not a preset (${PRESET_NAMES})`;
    throw new CliError(`--url ${remedy}${why}`);
  }
  const auth = options.auth ?? preset?.auth;
  const { auth_settings: settings } = authSettingsOf(
    options,
    auth === preset?.auth ? preset?.authSettings : {},
  );
  const asks = options.secret ?? (takesSecret(auth, settings) && (preset?.needsSecret ?? true));
  const team = options.team === undefined ? null : await api.get<TeamView>(path('teams', options.team));
  const title = `${preset?.title ?? name!}${team === null ? '' : ` for ${team.name}`}`;
  const secret = asks ? await readProviderSecret(`Secret of ${title}`, auth) : null;
  const isOfPreset = team !== null && options.preset === undefined && preset !== undefined;
  const provider = await api.post<ProviderView>('providers', {
    ...{ name: isOfPreset ? accountName(name!, team.name) : name, url, secret },
    ...(team !== null && { team: team.id }),
    ...(auth !== undefined && { auth }),
    ...(team === null && options.default !== undefined && { default: options.default }),
    ...(settings !== undefined && { auth_settings: settings }),
    ...catalogOf(options),
    ...onDisconnectOf({ onDisconnect: options.onDisconnect ?? preset?.onDisconnect }),
  });
  const of = team === null ? '' : ` of team ${team.name}`;
  out.result(provider, () => `Added provider ${provider.name} (${provider.url})${of}.`);
  const admitted = team && (await admitAccount(session, team, provider, options.default === true));
  const byDefault = provider.default
    ? '/v1/… (unless PROVIDER_URL is set) or '
    : admitted?.default_provider === provider.name
      ? '/v1/… or '
      : '';
  if (provider.auth === 'client')
    out.note(
      'Callers send the gateway key as x-gateway-key, and their own credential as the provider expects it.',
    );
  noteIdentityToken(out, settings);
  out.note(
    `Send calls to ${byDefault}/p/${provider.name}/…\nTest it: ${cliCommand(`providers test ${provider.name}`)}`,
  );
}

/** The name is not checked: the setting of a replica may follow. */
function noteIdentityToken(out: Session['out'], settings: AuthSettings | undefined): void {
  const name = settings?.identity_token;
  if (name !== undefined)
    out.note(
      `IDENTITY_TOKEN_FILES must name the identity token "${name}" on every replica: calls fail without it.`,
    );
}

async function authOf(api: Session['api'], name: string): Promise<string> {
  return (await api.get<ProviderView>(path('providers', name))).auth;
}

/** The price list as a field of the admin API; null for none. */
function catalogOf({ catalog }: Pick<AddOptions, 'catalog'>): object {
  return catalog === undefined ? {} : { catalog: catalog === 'none' ? null : catalog };
}

/** What the caller gave, otherwise what the preset says, as a field of the admin API. */
function onDisconnectOf({ onDisconnect }: Pick<AddOptions, 'onDisconnect'>): object {
  return onDisconnect === undefined ? {} : { on_disconnect: onDisconnect };
}

async function show({ api, out }: Session, _: object, name?: string) {
  const provider = await api.get<ProviderView>(path('providers', name!));
  out.result(provider, () => providerLines(out, provider));
}

async function update(
  { api, out }: Session,
  { secret: asks, url, auth, default: isDefault, team, catalog, onDisconnect, ...options }: AddOptions,
  name?: string,
) {
  const change = {
    ...(url !== undefined && { url }),
    ...(auth !== undefined && { auth }),
    ...(isDefault !== undefined && { default: isDefault }),
    ...(team !== undefined && { team: team === 'none' ? null : team }),
    ...(asks === false && { secret: null }),
    ...authSettingsOf(options),
    ...catalogOf({ catalog }),
    ...onDisconnectOf({ onDisconnect }),
  };
  if (asks !== true && Object.keys(change).length === 0)
    throw new CliError(
      'nothing to change: give --url, --auth or one of its settings, --catalog, --on-disconnect, --secret, --no-secret, --default, --no-default or --team',
    );
  const secret =
    asks === true
      ? { secret: await readProviderSecret(`New secret of ${name!}`, auth ?? (await authOf(api, name!))) }
      : {};
  const provider = await api.patch<ProviderView>(path('providers', name!), { ...change, ...secret });
  out.result(provider, () => `Updated provider ${provider.name} (${provider.url}).`);
  noteIdentityToken(out, change.auth_settings);
  if (asks === true) out.note(`Test it: ${cliCommand(`providers test ${provider.name}`)}`);
}

async function test({ api, out }: Session, _: object, name?: string) {
  const result = await api.post<ProbeResult>(path('providers', name!, 'test'));
  if (!result.ok) process.exitCode = 1;
  if (out.isJson) {
    out.json(result);
    return;
  }
  const status = result.status === null ? '' : `, status ${result.status}`;
  const code = out.styled(result.code, result.ok ? 'green' : 'red');
  const line = `${name!}: ${code}${status}, ${Math.round(result.duration_ms)} ms\n${result.message}`;
  if (result.ok) console.log(line);
  else console.error(line);
}
