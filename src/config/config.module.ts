import { type DynamicModule, Inject, Module, type Provider } from '@nestjs/common';
import { ConfigModule as NestConfigModule } from '@nestjs/config';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { loadEnv, type PosternOptions } from './env.js';
import { DeclaredSettings, type SettingsOptions, type SettingsSchema } from './module-settings.js';
import { completeSettings, type Settings, settingsByName } from './settings.js';

/** Injection token of the whole, typed settings. */
export const SETTINGS = Symbol('Settings');

/** Found by PosternFactory in the metadata of the modules: it reads the settings before Nest makes providers. */
export const POSTERN_OPTIONS = Symbol('PosternOptions');

/** Parameter decorator that injects the settings: `constructor(@InjectSettings() private readonly settings: Settings)` */
export const InjectSettings = () => Inject(SETTINGS);

/** The HTTP adapter of a gateway has its settings. */
interface WithSettings {
  readonly settings?: Settings;
}

@Module({})
class ModuleSettings {}

/**
 * Makes the validated settings injectable in every module: typed as a whole by `@InjectSettings()`, or one by one under the
 * name of the environment variable by `ConfigService` of @nestjs/config.
 *
 * They go through the `load` option of @nestjs/config and not through `validate`: that one copies what it returns into
 * the environment, where child processes would inherit a second copy of every secret.
 */
@Module({})
export class ConfigModule {
  /**
   * The settings of a process that has read them.
   *
   * @internal
   */
  static forSettings(settings: Settings): DynamicModule {
    return configModule({ provide: SETTINGS, useFactory: () => settings });
  }

  /**
   * The settings of the gateway's HTTP adapter. With another one, as in Nest's `Test.createTestingModule()`, they are read
   * from these options and the environment.
   *
   * @internal
   */
  static forOptions(options: PosternOptions): DynamicModule {
    return configModule({
      provide: SETTINGS,
      inject: [HttpAdapterHost, ModulesContainer],
      useFactory: ({ httpAdapter }: HttpAdapterHost, modules: ModulesContainer) =>
        (httpAdapter as WithSettings | undefined)?.settings ??
        completeSettings(loadEnv(undefined, undefined, { options, declared: declaredIn(modules) }))
    });
  }

  /**
   * Declares environment variables of a module's own. They are read when the gateway starts, from the same places and
   * with the same rules as the gateway's own, and every error is reported at once. `ConfigService` returns the values.
   *
   *     const quotaSettings = z.object({ QUOTA_TOKENS_PER_DAY: z.coerce.number().int().min(1).default(1_000_000) });
   *     @Module({ imports: [ConfigModule.forFeature(quotaSettings)] })
   *
   * @throws Error for a variable that is malformed or one of the gateway's own
   */
  static forFeature(schema: SettingsSchema, options?: SettingsOptions): DynamicModule {
    const declared = new DeclaredSettings(schema, options);
    const check = (settings: Settings) => {
      const missing = declared.names.filter((name) => !(name in settings.moduleSettings));
      if (missing.length > 0) {
        throw new Error(
          `${missing.join(', ')}: declared after the environment was read; import the module below the root module`
        );
      }
    };
    return {
      module: ModuleSettings,
      providers: [
        { provide: DeclaredSettings, useValue: declared },
        { provide: Symbol('declared settings'), inject: [SETTINGS], useFactory: check }
      ]
    };
  }
}

/** What the modules of an application declare. */
export function declaredIn(modules: ModulesContainer): DeclaredSettings[] {
  return [...modules.values()]
    .map(({ providers }) => providers.get(DeclaredSettings)?.instance)
    .filter((found) => found instanceof DeclaredSettings);
}

function configModule(settings: Provider): DynamicModule {
  return {
    module: ConfigModule,
    global: true,
    imports: [nestConfigModule()],
    providers: [settings],
    exports: [SETTINGS]
  };
}

/** @nestjs/config injects nothing into what it loads. Its module is plain data, so the settings are added to it. */
async function nestConfigModule(): Promise<DynamicModule> {
  const load = (settings: Settings) => settingsByName(settings);
  const made = await NestConfigModule.forRoot({
    isGlobal: true,
    load: [load as unknown as () => Record<string, unknown>],
    ignoreEnvFile: true,
    ignoreEnvVars: true,
    skipProcessEnv: true
  });
  const providers = made.providers!.map((provider) =>
    'useFactory' in provider && (provider.useFactory as unknown) === load
      ? { ...provider, inject: [SETTINGS] }
      : provider
  );
  return { ...made, providers };
}
