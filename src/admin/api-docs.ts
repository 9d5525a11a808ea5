import { type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Express, NextFunction, Request, Response } from 'express';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminTokenGuard } from './admin-token.guard.js';

@Module({})
class DocsModule {}

const PATHS = ['/docs', '/docs-json'];

/**
 * `/docs` for people, `/docs-json` for programs. What makes them is loaded when they are first asked for: it takes a third
 * of a second, which every start would pay.
 *
 * @param guarded true: only with the admin token
 */
export function serveApiDocs(app: INestApplication, guarded: boolean): void {
  if (guarded) {
    const guard = app.get(AdminTokenGuard, { strict: false });
    const filter = app.get(AdminErrorFilter, { strict: false });
    app.use(PATHS, (req: Request, res: Response, next: NextFunction) => {
      guard.admit(req, res).then(
        () => next(),
        (error: unknown) => filter.answer(error, res),
      );
    });
  }
  let docs: Promise<Express> | undefined;
  app.use(PATHS, (req: Request, res: Response, next: NextFunction) => {
    // Express takes the path off that this is mounted on.
    req.url = req.originalUrl;
    (docs ??= makeDocs(app)).then((serve) => serve(req, res, next), next);
  });
}

/** An application of its own: what is added to one that runs comes behind its handler for roads that nobody has. */
async function makeDocs(app: INestApplication): Promise<Express> {
  const { SwaggerModule } = await import('@nestjs/swagger');
  const { apiDocument } = await import('./api-document.js');
  const docs = await NestFactory.create(DocsModule, {
    logger: false,
    bodyParser: false,
    abortOnError: false,
  });
  SwaggerModule.setup('docs', docs, apiDocument(app), {
    jsonDocumentUrl: 'docs-json',
    raw: ['json'],
    customSiteTitle: 'Postern admin API',
    swaggerOptions: { persistAuthorization: true },
  });
  await docs.init();
  return docs.getHttpAdapter().getInstance() as Express;
}
