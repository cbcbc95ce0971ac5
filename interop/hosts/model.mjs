// A model that follows a script, over HTTP on this machine only.
import { createServer } from 'node:http';
import { dialects } from './dialects.mjs';

// startModel serves a model that calls the tools of script, one after the other, and then says that it
// is done. A step is { tool, args }; a tool is found by the end of its name, since hosts prefix it. If
// an answer says that a call is still running, the model waits for it, as a real one is told to.
//
// calls has what the model saw: { tool, seconds, text, waited }, where seconds are from the call to the request
// that has its result. seen has the names of the tools that were offered. Requests without tools, such as
// one for the title of a session, are answered with a word and not recorded.
export async function startModel(script, log = () => {}) {
  const model = { calls: [], seen: new Set(), found: new Map(), requests: 0, done: false };
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://model').pathname;
    const dialect = dialects.find((d) => d.matches(path));
    let body;
    try {
      const parts = [];
      for await (const part of request) parts.push(part);
      const all = Buffer.concat(parts).toString();
      body = all ? JSON.parse(all) : {};
    } catch (err) {
      log(`${request.method} ${path}: ${err}`);
      response.writeHead(400).end();
      return;
    }
    log(`${request.method} ${path} ${JSON.stringify(body).slice(0, 20_000)}`);
    if (!dialect || request.method !== 'POST') {
      json(response, other(path), dialect || !/models|count_?tokens/i.test(path) ? 404 : 200);
      return;
    }
    const reply = decide(model, script, dialect.tools(body, path), dialect.results(body, path), JSON.stringify(body));
    log(`reply ${JSON.stringify(reply)}`);
    if (!dialect.streams(body, path)) {
      json(response, dialect.whole(body, reply));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of dialect.stream(body, reply)) {
      response.write(`${event.type ? `event: ${event.type}\n` : ''}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(model, {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }),
  });
}

function json(response, value, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function other(path) {
  if (/countTokens$/.test(path)) return { totalTokens: 10 };
  if (/count_tokens$/.test(path)) return { input_tokens: 10 };
  const model = { id: 'scripted', object: 'model', created: 1, owned_by: 'script' };
  return path.endsWith('/models') ? { object: 'list', data: [model] } : {};
}

const mostWaits = 100;

// decide takes what is new in the results of the conversation, and says what comes next. A host may send
// the same request again; it gets the same reply.
export function decide(model, script, tools, results, body = '', now = performance.now()) {
  for (const { name } of tools) model.seen.add(name);
  if (!tools.some(({ name }) => script.some((step) => ends(name, step.tool)))
    && !tools.some(({ name }) => searches(name))) return { text: 'Scripted.' };
  model.requests++;
  for (const result of results.slice(model.calls.filter((call) => 'text' in call).length)) {
    const call = model.calls.find((c) => !('text' in c));
    if (!call) break; // of a tool that the host has called by itself
    call.seconds = (now - call.at) / 1000;
    call.text = result;
  }
  const last = model.calls.at(-1);
  if (last && !('text' in last)) return { call: last.call };
  if (last?.search) return next(model, tools, last.tool, last.args, body, last.waited);
  // Some hosts show a model the result as JSON.
  const again = last?.text.replaceAll('\\"', '"').match(/Call (\S*wait_for_result\S*) with (\{[^{}]*\})/);
  if (again && model.calls.filter((c) => c.waited).length < mostWaits) return next(model, tools, again[1], JSON.parse(again[2]), body, true);
  const step = script[model.calls.filter((c) => !c.waited && !c.search).length];
  if (step) return next(model, tools, step.tool, step.args ?? {}, body, false);
  model.done = true;
  return { text: 'Done.' };
}

function next(model, tools, tool, args, body, waited) {
  const last = model.calls.at(-1);
  const searched = last?.search && last.tool === tool && last.text.match(new RegExp(`"name":"(\\w*_${tool})"`))?.[1];
  if (searched) model.found.set(tool, searched); // a model searches once
  const known = model.found.get(tool);
  const found = tools.find(({ name }) => name === tool) ?? tools.find(({ name }) => ends(name, tool)) ?? (known && { name: known });
  const search = !found && tools.find(({ name }) => searches(name));
  if (!found && !search) {
    const offered = tools.map(({ name }) => name);
    model.calls.push({ tool, waited, seconds: 0, text: '(no such tool is offered)', offered, missing: true });
    model.done = true;
    return { text: `There is no tool ${tool}.` };
  }
  if (search && last?.search && last.tool === tool) {
    model.done = true;
    return { text: `No tool ${tool} was found.` };
  }
  const id = `call_${model.calls.length + 1}`;
  const call = found ? { id, ...found, args } : { id, name: search.name, args: { query: `select:${named(body, tool)}` } };
  model.calls.push({ tool, args, waited, ...(!found && { search: true }), at: performance.now(), call });
  return { call };
}

// named gives the whole name of a tool that stands in a text only.
const named = (body, tool) => body.match(new RegExp(`\\bmcp_\\w*_${tool}\\b`))?.[0] ?? tool;

// A host lists only the names of many tools, and has one that gives the rest.
const searches = (name) => /^tool_?search$/i.test(name);

const ends = (name, tool) => name === tool || (name?.endsWith(tool) && /[^a-z0-9]/i.test(name.at(-tool.length - 1)));
