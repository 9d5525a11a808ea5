import { Command } from 'commander';
import { cliCommand } from '../platform/cli-command.js';
import { commandUser } from '../platform/actor.js';
import { parseInput } from '../admin/parse-input.js';
import { newProviderSchema } from '../providers/providers.schema.js';
import { loadEnv } from '../config/env.js';
import { ServiceError } from '../errors/service-error.js';
import { PRESETS } from '../providers/presets.js';
import { ProviderProbe } from '../providers/provider-probe.js';
import type { ProviderView } from '../providers/providers.schema.js';
import { ResealService } from '../providers/reseal.service.js';
import { StoredProvidersService } from '../providers/stored-providers.service.js';
import { type OutputOptions, printJson, printPage } from './output.js';
import { readSecret } from './read-secret.js';
import { shortTime } from './table.js';
import { withServices } from './with-services.js';

interface AddOptions extends OutputOptions {
  preset?: string;
  url?: string;
  auth?: string;
  /** --secret, --no-secret, or neither. */
  secret?: boolean;
  default?: boolean;
}

const SEALS = { seals: true };
const PRESET_NAMES = Object.keys(PRESETS).join(', ');

/** `postern providers …` */
export function providersCommand(): Command {
  const providers = new Command('providers');

  providers
    .command('add')
    .description('add a provider; its secret is asked for, or read from standard input')
    .argument('<name>', 'what to call it in /p/<name>/…; the name of a preset is enough')
    .option('--preset <preset>', 'take url and auth from a preset (default: the one called like <name>)')
    .option('--url <url>', 'where it lives, without /v1, such as https://api.openai.com')
    .option('--auth <style>', 'how its secret is sent: bearer, x-api-key, api-key or x-goog-api-key')
    .option('--secret', 'ask for a secret also where the preset takes none')
    .option('--no-secret', 'it takes no secret')
    .option('--default', 'calls to /v1 go to it, in place of the one before')
    .option('--json', 'print the provider as JSON')
    .addHelpText(
      'after',
      `
Presets: ${PRESET_NAMES}

Examples:
  postern providers add groq
  postern providers add openai --default < openai-key.txt
  postern providers add azure --url ${PRESETS.azure!.example}
  postern providers add big-box --preset vllm --url http://10.0.0.5:8000`,
    )
    .action(add);

  providers
    .command('list')
    .description('show the providers; never their secrets')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', '\nExamples:\n  postern providers list\n  postern providers list --json')
    .action(list);

  providers
    .command('test')
    .description(
      'ask a provider for its models and say in words what is wrong; exit code 1 when something is',
    )
    .argument('<name>', 'its name')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExample:\n  postern providers test groq')
    .action(test);

  providers
    .command('remove')
    .description('remove a provider and its secret; keys that name it are refused from then on')
    .argument('<name>', 'its name')
    .option('--json', 'print the name as JSON')
    .addHelpText('after', '\nExample:\n  postern providers remove groq')
    .action(remove);

  providers
    .command('reseal')
    .description('seal anew with MASTER_KEY what MASTER_KEY_PREVIOUS has sealed')
    .option('--json', 'print the names by outcome as JSON')
    .addHelpText(
      'after',
      `
To change the master key: set MASTER_KEY to a new one and MASTER_KEY_PREVIOUS to the old one for every gateway, start
them again, run this with the same two, then take MASTER_KEY_PREVIOUS away, a day later where keys replay: it opens the
answers kept until then. Can be stopped and run again at any time.

Example:
  postern providers reseal`,
    )
    .action(reseal);

  return providers;
}

async function add(name: string, options: AddOptions): Promise<void> {
  const preset = PRESETS[options.preset ?? name];
  if (preset === undefined && options.preset !== undefined) {
    throw ServiceError.of('invalid', 'preset', `must be one of ${PRESET_NAMES}`);
  }
  const url = options.url ?? preset?.url ?? undefined;
  if (url === undefined) {
    const remedy = preset?.example ? `must be given, such as ${preset.example}` : 'must be given';
    throw ServiceError.of(
      'invalid',
      'url',
      preset ? remedy : `${remedy}, for this is no preset (${PRESET_NAMES})`,
    );
  }
  const order = { name, url, auth: options.auth ?? preset?.auth, default: options.default };
  // Before anybody is asked for a secret in vain.
  parseInput(newProviderSchema, { ...order, secret: null });
  const asks = options.secret ?? preset?.needsSecret ?? true;
  const secret = asks ? await readSecret(`Secret of ${preset?.title ?? name}`) : null;
  const made = parseInput(newProviderSchema, { ...order, secret });
  const provider = await withServices(
    (app) => app.get(StoredProvidersService).create(made, commandUser()),
    SEALS,
  );
  if (options.json) {
    printJson(provider);
    return;
  }
  console.log(`Added the provider ${provider.name} (${provider.url}).`);
  const road = provider.default ? 'at /v1/... unless PROVIDER_URL is set, and ' : '';
  console.log(
    `Calls reach it ${road}at /p/${provider.name}/...\nTry it: ${cliCommand(`providers test ${provider.name}`)}`,
  );
}

async function list({ json }: OutputOptions): Promise<void> {
  const data = await withServices((app) => app.get(StoredProvidersService).list(), SEALS);
  const head = ['NAME', 'URL', 'AUTH', 'SECRET', 'DEFAULT', 'ENABLED', 'SOURCE', 'UPDATED'];
  printPage({ data, next_cursor: null }, { json }, head, (provider: ProviderView) => [
    provider.name,
    provider.url,
    provider.auth,
    provider.secret_state,
    provider.default,
    provider.enabled,
    provider.source,
    shortTime(provider.updated_at),
  ]);
}

async function test(name: string, { json }: OutputOptions): Promise<void> {
  const result = await withServices(
    async (app) => app.get(ProviderProbe).run(await app.get(StoredProvidersService).open(name)),
    SEALS,
  );
  if (json) printJson(result);
  else {
    const status = result.status === null ? '' : `, status ${result.status}`;
    const line = `${name}: ${result.code}${status}, ${result.duration_ms} ms\n${result.message}`;
    if (result.ok) console.log(line);
    else console.error(line);
  }
  if (!result.ok) process.exitCode = 1;
}

async function remove(name: string, { json }: OutputOptions): Promise<void> {
  await withServices((app) => app.get(StoredProvidersService).remove(name, commandUser()));
  if (json) printJson({ removed: name });
  else console.log(`Removed the provider ${name}.`);
}

async function reseal({ json }: OutputOptions): Promise<void> {
  const done = await withServices((app) => app.get(ResealService).reseal(commandUser()), SEALS);
  // A shell that lacks what the gateway was started with would else look like a change that is done.
  if (loadEnv().masterKeyPrevious === undefined) {
    console.error(
      'MASTER_KEY_PREVIOUS is not set for this command, so there was nothing to seal anew from. ' +
        'During a change of the master key, give it both keys, as the gateway has them.',
    );
  }
  if (json) printJson(done);
  else {
    console.log(
      `Sealed anew: ${done.resealed.length}; sealed with this master key already: ${done.current.length}.`,
    );
    if (done.unreadable.length > 0) {
      console.error(
        `Not opened by MASTER_KEY or MASTER_KEY_PREVIOUS: ${done.unreadable.join(', ')}. ` +
          'Give the key they were sealed with, or store their secrets anew.',
      );
    }
  }
  if (done.unreadable.length > 0) process.exitCode = 1;
}
