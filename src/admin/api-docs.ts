import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Express, NextFunction, Request, Response } from 'express';
import { applyApiDecorators } from './api-decorators.js';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminGuard } from './admin.guard.js';

@Module({})
class DocsModule {}

const PATHS = ['/docs', '/docs-json'];
/** A browser can send no Bearer token by itself. The calls of the page do: the API takes no other. */
const BROWSER_CHALLENGE = 'Basic realm="Postern", charset="UTF-8"';

/**
 * Serves the API documentation: `/docs` as a page, `/docs-json` as the OpenAPI document. Swagger is loaded on the first
 * request (api-decorators.ts).
 *
 * @param guarded true: requires the admin token, as Bearer token or as the password of HTTP Basic
 */
export function serveApiDocs(app: INestApplication, guarded: boolean): void {
  if (guarded) {
    const guard = app.get(AdminGuard, { strict: false });
    const filter = app.get(AdminErrorFilter, { strict: false });
    app.use(PATHS, (req: Request, res: Response, next: NextFunction) => {
      guard.admit(req, res, { basic: true }).then(
        () => next(),
        (error: unknown) => filter.answer(error, res, BROWSER_CHALLENGE),
      );
    });
  }
  let docs: Promise<Express> | undefined;
  app.use(PATHS, (req: Request, res: Response, next: NextFunction) => {
    // Express removes the mount path from req.url.
    req.url = req.originalUrl;
    (docs ??= createDocs(app)).then((serve) => serve(req, res, next), next);
  });
}

/** Builds a separate application: a route added to a running one comes after its handler for unknown paths. */
async function createDocs(app: INestApplication): Promise<Express> {
  const swagger = await import('@nestjs/swagger');
  const { apiDocument } = await import('./api-document.js');
  applyApiDecorators(swagger);
  const docs = await NestFactory.create(DocsModule, {
    bodyParser: false,
    abortOnError: false,
  });
  swagger.SwaggerModule.setup('docs', docs, apiDocument(app), {
    jsonDocumentUrl: 'docs-json',
    raw: ['json'],
    customSiteTitle: 'Postern admin API',
    // Without the bar with the logo of Swagger.
    customCss: '.swagger-ui .topbar { display: none }',
    swaggerOptions: { persistAuthorization: true },
  });
  await docs.init();
  return docs.getHttpAdapter().getInstance() as Express;
}
