import { createRequire } from 'node:module';
import { type CanActivate, ForbiddenException, Injectable, Logger } from '@nestjs/common';
import {
  EXCEPTION_FILTERS_METADATA,
  HEADERS_METADATA,
  HOST_METADATA,
  HTTP_CODE_METADATA,
  ROUTE_ARGS_METADATA,
  RouteParamtypes,
} from '@nestjs/common/internal';
import { ExternalContextCreator, type NestContainer } from '@nestjs/core';
import {
  ExecutionContextHost,
  GuardsContextCreator,
  InterceptorsContextCreator,
} from '@nestjs/core/internal';
import type { Request, Response } from 'express';
import { GatewayKeyGuard } from '../auth/gateway-key.guard.js';
import { RequestLogInterceptor } from './stages/request-log.interceptor.js';
import { GatewayErrorFilter } from './http/gateway-error.filter.js';
import { ProxyController } from './proxy.controller.js';
import { RouteGuard } from './stages/route.guard.js';

/** Set by decorators of the controller or its handler that Nest's router handles. */
const ROUTER_METADATA = [EXCEPTION_FILTERS_METADATA, HEADERS_METADATA, HOST_METADATA, HTTP_CODE_METADATA];
/**
 * Minor versions of Nest that the tests have compared this with. Nest may change what its router does, and what it exports
 * for packages of its own, in any minor.
 */
const TRIED = ['12.5'];
/** The request as the handler's first parameter and the response as its second, as Nest names them. */
const PARAMETERS = [`${RouteParamtypes.REQUEST}:0`, `${RouteParamtypes.RESPONSE}:1`];

/**
 * Runs the guards, the interceptor and the handler of ProxyController in Nest's order, without Nest's router, which takes
 * a third of a call's processor time. Not used, so that Nest's router runs, as soon as anything else is registered for the
 * controller, for all controllers or for the paths of calls, the handler has other parameters than the request and the
 * response, or Nest is of a minor version that was not tried. So no code but the gateway's own sees a request that Express has not prepared.
 */
@Injectable()
export class FastPath {
  static nestVersion = (createRequire(import.meta.url)('@nestjs/core/package.json') as { version: string })
    .version;
  private readonly logger = new Logger('Proxy');
  private keyGuard!: GatewayKeyGuard;
  private routeGuard!: RouteGuard;
  private interceptor!: RequestLogInterceptor;
  private controller!: ProxyController;
  private decorated!: () => Promise<void>;
  private filter!: GatewayErrorFilter;

  constructor(private readonly contexts: ExternalContextCreator) {}

  /** Resolves guards, interceptor and filter, once everything is registered. @returns why Nest's router is needed; null if it is not */
  prepare(): string | null {
    const { nestVersion } = FastPath;
    if (!TRIED.some((minor) => nestVersion.startsWith(`${minor}.`)))
      return `Nest ${nestVersion}: Postern was tried with ${TRIED.join(', ')}`;
    const container = this.contexts['container'] as NestContainer;
    const config = container.applicationConfig!;
    const [key, module] = [...container.getModules()].find(([, { controllers }]) =>
      controllers.has(ProxyController),
    )!;
    const wrapper = module.controllers.get(ProxyController)!;
    this.controller = wrapper.instance as ProxyController;
    // Carries the metadata of the decorators; it is not called here.
    this.decorated = Reflect.get(this.controller, 'forward') as () => Promise<void>;
    const parameters: object = Reflect.getMetadata(ROUTE_ARGS_METADATA, ProxyController, 'forward') as object;
    // Request-scoped providers make the controller's dependency tree dynamic.
    if (config.getGlobalPipes().length > 0) return `the pipe ${namesOf(config.getGlobalPipes())}`;
    if (!wrapper.isDependencyTreeStatic()) return 'a provider of the scope REQUEST';
    // A call may ask for a version of the API that the controller does not have.
    if (config.getVersioning() !== undefined) return 'versioning';
    if (Object.keys(parameters).sort().join() !== PARAMETERS.join())
      return 'other parameters of ProxyController';
    if (ROUTER_METADATA.some((name) => this.hasMetadata(name))) return 'a decorator of ProxyController';
    const handler = [this.controller, this.decorated, key] as const;
    const guards: CanActivate[] = new GuardsContextCreator(container, config).create(...handler);
    const interceptors = new InterceptorsContextCreator(container, config).create(...handler);
    const filters = config.getGlobalFilters();
    // With those for all controllers.
    if (!areOf(guards, GatewayKeyGuard, RouteGuard))
      return `the guards ${namesOf(guards, GatewayKeyGuard, RouteGuard)}`;
    if (!areOf(interceptors, RequestLogInterceptor))
      return `the interceptors ${namesOf(interceptors, RequestLogInterceptor)}`;
    if (!areOf(filters, GatewayErrorFilter)) return `the filters ${namesOf(filters, GatewayErrorFilter)}`;
    [this.keyGuard, this.routeGuard] = guards as [GatewayKeyGuard, RouteGuard];
    [this.interceptor] = interceptors as [RequestLogInterceptor];
    [this.filter] = filters as [GatewayErrorFilter];
    return null;
  }

  private hasMetadata(name: string): boolean {
    return [ProxyController, this.decorated].some(
      (target) => Reflect.getMetadata(name, target) !== undefined,
    );
  }

  readonly run = (req: Request, res: Response): void => {
    const context = new ExecutionContextHost([req, res], ProxyController, this.decorated);
    try {
      const admitted = this.keyGuard.canActivate(context) as boolean | Promise<boolean>;
      const ended =
        typeof admitted === 'boolean'
          ? this.forward(admitted, context, req, res)
          : admitted.then((result) => this.forward(result, context, req, res));
      ended.catch((error: unknown) => this.fail(error, context, res));
    } catch (error) {
      this.fail(error, context, res);
    }
  };

  private forward(
    admitted: boolean,
    context: ExecutionContextHost,
    req: Request,
    res: Response,
  ): Promise<void> {
    // The guards throw their own errors; in a test, one may be replaced.
    if (!admitted || !this.routeGuard.canActivate(context)) throw new ForbiddenException();
    return this.interceptor.record(req.call, () => this.controller.forward(req, res));
  }

  private fail(error: unknown, context: ExecutionContextHost, res: Response): void {
    try {
      this.filter.catch(error, context);
    } catch (failure) {
      // An error thrown here would end the process.
      this.logger.error('The error response failed', failure instanceof Error ? failure.stack : failure);
      res.destroy();
    }
  }
}

/** For people. @param own those of the gateway */
function namesOf(objects: readonly object[], ...own: readonly object[]): string {
  const others = objects.filter(({ constructor }) => !own.includes(constructor));
  return others.map(({ constructor }) => constructor.name).join(', ') || 'of the gateway, which have changed';
}

/** True if the objects are direct instances of these classes, in this order: a subclass may do anything. */
function areOf(
  objects: readonly object[],
  ...classes: readonly (abstract new (...args: never[]) => object)[]
): boolean {
  return objects.length === classes.length && objects.every((object, i) => object.constructor === classes[i]);
}
