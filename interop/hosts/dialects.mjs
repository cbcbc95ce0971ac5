// The interfaces of models that hosts speak, as far as a scripted model needs them. A dialect reads from
// a request the names of the tools and what the tools have answered so far, and writes a reply: a
// text, or a call of a tool. Whatever else a request has is left alone.

const text = (content) =>
  typeof content === 'string' ? content
  : Array.isArray(content) ? content.map((part) => part.text ?? (typeof part === 'string' ? part : part.content ? text(part.content) : JSON.stringify(part))).join('')
  : content == null ? ''
  : JSON.stringify(content);

// A call has { id, name, space, args }; space is the group of tools that a host has put it into.
const chat = {
  matches: (path) => path.endsWith('/chat/completions'),
  tools: (body) => (body.tools ?? []).map((tool) => ({ name: tool.function?.name })),
  results: (body) => body.messages.filter((m) => m.role === 'tool').map((m) => text(m.content)),
  streams: (body) => body.stream === true,
  *stream(body, reply) {
    const chunk = (delta, finish = null) => ({
      id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason: finish }],
    });
    yield chunk({ role: 'assistant', content: reply.text ?? '' });
    if (reply.call) yield chunk({ tool_calls: [{ index: 0, ...chatCall(reply.call) }] });
    yield chunk({}, reply.call ? 'tool_calls' : 'stop');
    yield { ...chunk({}), choices: [], usage: chatUsage };
    yield '[DONE]';
  },
  whole: (body, reply) => ({
    id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: body.model, usage: chatUsage,
    choices: [{
      index: 0, finish_reason: reply.call ? 'tool_calls' : 'stop',
      message: { role: 'assistant', content: reply.text ?? null, ...(reply.call && { tool_calls: [chatCall(reply.call)] }) },
    }],
  }),
};

const chatUsage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
const chatCall = ({ id, name, args }) => ({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } });

const responses = {
  matches: (path) => path.endsWith('/responses'),
  tools: (body) => (body.tools ?? []).flatMap((tool) =>
    tool.type === 'namespace' ? tool.tools.map((inner) => ({ name: inner.name, space: tool.name })) : [{ name: tool.name ?? tool.type }]),
  results: (body) => (Array.isArray(body.input) ? body.input : []).filter((item) => /_call_output$|^tool_search_output$/.test(item.type))
    .map((item) => text(item.output ?? item.tools)),
  streams: (body) => body.stream === true,
  *stream(body, reply) {
    const whole = this.whole(body, reply);
    const [item] = whole.output;
    yield { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: null } };
    yield { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress' } };
    if (reply.text) yield { type: 'response.output_text.delta', item_id: item.id, output_index: 0, content_index: 0, delta: reply.text };
    yield { type: 'response.output_item.done', output_index: 0, item };
    yield { type: 'response.completed', response: whole };
  },
  whole: (body, reply) => ({
    id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: body.model, error: null,
    usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
    output: [reply.call
      ? { type: 'function_call', id: `fc_${reply.call.id}`, call_id: reply.call.id, status: 'completed', name: reply.call.name,
          ...(reply.call.space && { namespace: reply.call.space }), arguments: JSON.stringify(reply.call.args) }
      : { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: reply.text, annotations: [] }] }],
  }),
};

const gemini = {
  matches: (path) => /:(stream)?generateContent$/i.test(path),
  tools: (body) => (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map(({ name }) => ({ name })),
  // What a function has answered is an object; hosts put the text of a tool under a key of their choice.
  results: (body) => (body.contents ?? []).flatMap((content) => content.parts ?? []).filter((part) => part.functionResponse)
    .map(({ functionResponse: { response } }) => text(response?.output ?? response?.error ?? response)),
  streams: (_, path) => /:streamGenerateContent$/i.test(path),
  *stream(body, reply) { yield this.whole(body, reply); },
  whole: (_, reply) => ({
    candidates: [{
      index: 0, finishReason: 'STOP',
      content: { role: 'model', parts: [reply.call ? { functionCall: { id: reply.call.id, name: reply.call.name, args: reply.call.args } } : { text: reply.text }] },
    }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
  }),
};

const messages = {
  matches: (path) => path.endsWith('/messages'),
  tools: (body) => (body.tools ?? []).map(({ name }) => ({ name })),
  results: (body) => body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter((part) => part.type === 'tool_result')
    .map(({ content }) => text(content)),
  streams: (body) => body.stream === true,
  *stream(body, reply) {
    const { content: [block], ...message } = this.whole(body, reply);
    yield { type: 'message_start', message: { ...message, content: [], stop_reason: null } };
    yield { type: 'content_block_start', index: 0, content_block: reply.call ? { ...block, input: {} } : { ...block, text: '' } };
    yield { type: 'content_block_delta', index: 0, delta: reply.call ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) } : { type: 'text_delta', text: block.text } };
    yield { type: 'content_block_stop', index: 0 };
    yield { type: 'message_delta', delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage: message.usage };
    yield { type: 'message_stop' };
  },
  whole: (body, reply) => ({
    id: 'msg_1', type: 'message', role: 'assistant', model: body.model, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 10 },
    stop_reason: reply.call ? 'tool_use' : 'end_turn',
    content: [reply.call ? { type: 'tool_use', id: reply.call.id, name: reply.call.name, input: reply.call.args } : { type: 'text', text: reply.text }],
  }),
};

export const dialects = [chat, responses, gemini, messages];
