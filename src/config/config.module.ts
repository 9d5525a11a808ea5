import { type DynamicModule, Inject, Module } from '@nestjs/common';
import { ConfigModule as NestConfigModule } from '@nestjs/config';
import { declareSettings, type SettingsOptions, type SettingsSchema } from './module-settings.js';
import { type Settings, settingsByName } from './settings.js';

/** Injection token of the whole, typed settings. */
export const SETTINGS = Symbol('Settings');

/** `constructor(@InjectSettings() private readonly settings: Settings)` */
export const InjectSettings = () => Inject(SETTINGS);

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
  static forSettings(settings: Settings): DynamicModule {
    return {
      module: ConfigModule,
      global: true,
      imports: [
        NestConfigModule.forRoot({
          isGlobal: true,
          load: [() => settingsByName(settings)],
          ignoreEnvFile: true,
          ignoreEnvVars: true,
          skipProcessEnv: true
        })
      ],
      providers: [{ provide: SETTINGS, useFactory: () => settings }],
      exports: [SETTINGS]
    };
  }

  /**
   * Declares environment variables of a module's own. They are read when the gateway starts, from the same places and
   * with the same rules as the gateway's own, and every error is reported at once. `ConfigService` returns the values.
   *
   *     const quotaSettings = z.object({ QUOTA_TOKENS_PER_DAY: z.coerce.number().int().min(1).default(1_000_000) });
   *     @Module({ imports: [ConfigModule.forFeature(quotaSettings)] })
   *
   * @throws Error for a variable that is malformed or already declared
   */
  static forFeature(schema: SettingsSchema, options?: SettingsOptions): DynamicModule {
    declareSettings(schema, options);
    const check = (settings: Settings) => {
      const missing = Object.keys(schema.shape).filter((name) => !(name in settings.moduleSettings));
      if (missing.length > 0) {
        throw new Error(
          `${missing.join(', ')}: declared after the environment was read; import the module before loadEnv() is called`
        );
      }
    };
    return {
      module: ModuleSettings,
      providers: [{ provide: Symbol('declared settings'), inject: [SETTINGS], useFactory: check }]
    };
  }
}
