import { type DynamicModule, Inject, Module } from '@nestjs/common';
import { ConfigModule as NestConfigModule, registerAs } from '@nestjs/config';
import type { Env } from './env.js';

/** Injection token of the whole, typed environment. */
export const ENV = Symbol('Env');

/** `constructor(@InjectEnv() private readonly env: Env)` */
export const InjectEnv = () => Inject(ENV);

/**
 * Hands the Env that was checked before Nest started (the adapter and the embedded Postgres need it earlier) to
 * every room. It goes through the `load` seam of @nestjs/config and not through `validate`: that one copies what
 * it returns into the environment, where child processes would inherit a second copy of every secret.
 */
@Module({})
export class ConfigModule {
  static forEnv(env: Env): DynamicModule {
    const loaded = registerAs('env', () => env);
    return {
      module: ConfigModule,
      global: true,
      imports: [
        NestConfigModule.forRoot({
          load: [loaded],
          ignoreEnvFile: true,
          ignoreEnvVars: true,
          skipProcessEnv: true,
        }),
      ],
      providers: [{ provide: ENV, inject: [loaded.KEY], useFactory: (value: Env) => value }],
      exports: [ENV],
    };
  }
}
