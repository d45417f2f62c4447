"""The engine: mailboxes, order, time and failure. It knows nothing of conversations.

An actor is an address. It comes to life when it is first spoken to, handles one message at a
time in the order of its mailbox, and is put to rest when nobody speaks to it.

    actor       what an actor is, and what its handler may do         the contract
    system      the engine as the rest of the house sees it           start here
    mailbox     a bounded queue whose senders wait in order
    cell        one address: its mailbox, its instance, its failures
    envelope    a message on its way, and the handler's hand on the engine
    workers     the tasks that handlers run in, kept for reuse
    supervisor  how often an address may fail before it rests
    retirement  how an idle address is put to rest
    ticker      the one sleeper: every deadline of the engine
    jobs        slow work beside an actor
    durable     messages that survive the process: their form, and the store they need
    dispatcher  which durable message is delivered when
    routes      who hears of an event
    events      the numbered events of one turn, for any number of readers
    observer    what the engine reports; stats: what it counts
    backend     the few primitives that asyncio and trio do differently
    testing     doubles that keep the same promises
"""
