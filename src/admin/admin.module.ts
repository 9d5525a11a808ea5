import { Global, Logger, Module, NotFoundException, type OnModuleInit, type Type } from '@nestjs/common';
import {
  ApplicationConfig,
  DiscoveryModule,
  DiscoveryService,
  HttpAdapterHost,
  ModulesContainer
} from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Request, Response } from 'express';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminGuard } from './admin.guard.js';
import { StartPageController } from './start-page.controller.js';
import { AdminToken } from './access/admin-token.entity.js';
import { CredentialLookups } from './access/credential-lookups.js';
import { TokenVerifier } from './access/token-verifier.js';
import { AdminSignIn } from './oidc/admin-sign-in.entity.js';
import { OidcController } from './oidc/oidc.controller.js';
import { OidcService } from './oidc/oidc.service.js';
import { AdminSession } from './sessions/admin-session.entity.js';
import { SessionController } from './sessions/session.controller.js';
import { SessionsService } from './sessions/sessions.service.js';
import { TokenFailures } from './token-failures.js';
import { unguardedRoutes } from './unguarded-routes.js';
import { isAdminController, unvalidatedInputs } from './unvalidated-inputs.js';

/** Provides what every `@AdminController()` needs. Global, so that modules do not have to import it. */
@Global()
@Module({
  imports: [DiscoveryModule, TypeOrmModule.forFeature([AdminToken, AdminSession, AdminSignIn])],
  controllers: [StartPageController, SessionController, OidcController],
  providers: [
    TokenFailures,
    CredentialLookups,
    TokenVerifier,
    SessionsService,
    OidcService,
    AdminGuard,
    AdminErrorFilter
  ],
  exports: [TokenVerifier, SessionsService, OidcService, AdminGuard, AdminErrorFilter]
})
export class AdminModule implements OnModuleInit {
  constructor(
    private readonly host: HttpAdapterHost,
    private readonly guard: AdminGuard,
    private readonly filter: AdminErrorFilter,
    private readonly discovery: DiscoveryService,
    private readonly config: ApplicationConfig,
    private readonly modules: ModulesContainer
  ) {}

  /**
   * Sends 404 for unknown paths below `/admin`. Nest runs this hook after it has routed every controller, whatever the
   * order of the modules. Without the token the response is 401, so that nobody can probe for endpoints.
   *
   * @throws Error for handlers whose input nobody validates, and for routes below `/admin` that nobody guards
   */
  onModuleInit(): void {
    this.requireSchemas();
    this.requireGuards();
    this.host.httpAdapter?.use('/admin', (req: Request, res: Response) => {
      this.guard
        .admit(req, res)
        .then(() => {
          throw new NotFoundException(
            'No such endpoint or method. The admin API is below /admin/v1/; /docs lists its endpoints.'
          );
        })
        .catch((error: unknown) => this.filter.respond(error, res));
    });
  }

  private requireSchemas(): void {
    const { discovery, config } = this;
    // Such as Nest's ValidationPipe, which validates classes.
    if (config.getGlobalPipes().length > 0 || config.getGlobalRequestPipes().length > 0) return;
    const controllers = discovery.getControllers().map(({ metatype }) => metatype as Type);
    const unvalidated = controllers.filter(isAdminController).flatMap(unvalidatedInputs);
    if (unvalidated.length === 0) return;
    throw new Error(
      `Nobody validates ${unvalidated.join(' and ')}: give each a zod schema, as in @Body({ schema: newQuotaSchema }), or a ` +
        'pipe, as in @Body(ValidationPipe)'
    );
  }

  /** A plain controller of a module is on the port of the calls, which may be the internet's. */
  private requireGuards(): void {
    const unguarded = unguardedRoutes(this.discovery, this.modules);
    const admin = unguarded.filter(({ isAdmin }) => isAdmin).map(({ name }) => name);
    if (admin.length > 0)
      throw new Error(
        `Without a guard, anybody could call ${admin.join(', ')}: use @AdminController() in place of @Controller(), or ` +
          '@UseGuards(); @PublicRoute() if anybody shall'
      );
    // Such a guard sees these routes too.
    const { config } = this;
    if (config.getGlobalGuards().length > 0 || config.getGlobalRequestGuards().length > 0) return;
    if (unguarded.length > 0)
      new Logger('Routes').warn(
        `Without a guard, anybody who reaches this port may call ${unguarded.map(({ name }) => name).join(', ')}. Give each ` +
          '@UseGuards(), such as GatewayKeyGuard, or @PublicRoute() if anybody shall.'
      );
  }
}
